//go:build !race

package jail

// withRace says that the race detector is built in.
const withRace = false
