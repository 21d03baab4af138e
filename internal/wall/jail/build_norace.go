//go:build !race

package jail

// withRace reports whether the race detector is built in.
const withRace = false
