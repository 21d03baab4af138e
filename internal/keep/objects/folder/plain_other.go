//go:build !unix

package folder

// plainly has an effect only on Unix.
const plainly = 0

// cannotSync reports that the system cannot flush what was opened for reading.
const cannotSync = true
