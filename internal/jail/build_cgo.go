//go:build linux && (amd64 || arm64) && cgo

package jail

// withCgo says that threads are made by the C library too. The product is
// built without; tests under the race detector are built with.
const withCgo = true
