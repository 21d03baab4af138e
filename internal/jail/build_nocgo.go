//go:build linux && (amd64 || arm64) && !cgo

package jail

// withCgo says that threads are made by the C library too.
const withCgo = false
