//go:build race

package jail

// withRace reports whether the race detector is built in. The detector maps terabytes of address
// space, so a limit on the address space would end the process.
const withRace = true
