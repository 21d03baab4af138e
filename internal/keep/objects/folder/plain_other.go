//go:build !unix

package folder

// plainly has an effect only on Unix.
const plainly = 0
