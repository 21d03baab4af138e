//go:build race

package jail

// withRace says that the race detector is built in. It maps terabytes of addresses, so a
// limit of address space would end the process.
const withRace = true
