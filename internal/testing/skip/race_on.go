//go:build race

package skip

// raceDetector says that it is built in. The host's text engine is then ten times
// slower.
const raceDetector = true
