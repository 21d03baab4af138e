//go:build race

package jail

// withRace reports whether the race detector is built in. The detector maps terabytes of address
// space, so a limit on address space would end the process.
const withRace = true
