//go:build !race

package skip

// raceDetector reports that the race detector is not built in.
const raceDetector = false
