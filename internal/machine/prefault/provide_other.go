//go:build !linux

package prefault

// provide returns false: this system cannot provide pages in advance.
func provide([]byte) bool { return false }
