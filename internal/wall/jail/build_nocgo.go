//go:build linux && (amd64 || arm64) && !cgo

package jail

// withCgo says that the C library makes threads, too.
const withCgo = false
