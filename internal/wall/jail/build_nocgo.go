//go:build linux && (amd64 || arm64) && !cgo

package jail

// withCgo reports whether the C library may create threads as well.
const withCgo = false
