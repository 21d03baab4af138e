// Package wall groups the packages that stand between hostile code and everything else. Jail runs
// an unprivileged process tree; dockerapi defines containers; egress is the proxy to listed hosts.
// Acme obtains the certificates that a server presents to clients. A wall does not depend on
// Python, Go or sessions. The WebAssembly wall is in internal/machine.
package wall
