//go:build race

package skip

// raceDetector reports that the race detector is built in. The host's engine for long texts is then
// ten times slower.
const raceDetector = true
