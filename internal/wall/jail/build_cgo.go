//go:build linux && (amd64 || arm64) && cgo

package jail

// withCgo reports whether the C library can also create threads. The product is built without cgo;
// tests with the race detector are built with it.
const withCgo = true
