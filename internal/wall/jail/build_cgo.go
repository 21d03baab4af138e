//go:build linux && (amd64 || arm64) && cgo

package jail

// withCgo says that the C library makes threads, too. The product is built without cgo,
// tests with the race detector are built with it.
const withCgo = true
