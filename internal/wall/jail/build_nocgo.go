//go:build linux && (amd64 || arm64) && !cgo

package jail

// withCgo reports whether the C library can also create threads.
const withCgo = false
