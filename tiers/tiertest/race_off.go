//go:build !race

package tiertest

// raceDetector says that it is not built in.
const raceDetector = false
