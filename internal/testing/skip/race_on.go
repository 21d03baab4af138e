//go:build race

package skip

// raceDetector reports that the race detector is built in. The host's text engine is then ten times
// slower.
const raceDetector = true
