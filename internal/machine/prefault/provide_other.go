//go:build !linux

package prefault

// provide reports that this system provides no pages ahead.
func provide([]byte) bool { return false }
