// Package wall stands between hostile code and everything else. Jail is a process tree without
// rights; dockerapi defines containers; egress is the proxy to listed hosts. Acme gets the
// certificates with which a server meets clients. A wall knows nothing of Python, Go or sessions.
// The wall of WebAssembly is in internal/machine.
package wall
