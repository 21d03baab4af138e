//go:build !race

package skip

// raceDetector says that it is not built in.
const raceDetector = false
