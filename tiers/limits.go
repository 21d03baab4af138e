package tiers

import (
	"fmt"
	"time"
)

// Limits bound one snippet. A zero field means the default, never "no limit".
//
// The time that a snippet spends waiting for host calls is charged to neither Wall nor Active.
type Limits struct {
	// Wall bounds the duration of a snippet, including sleep.
	Wall time.Duration
	// Active bounds the computing time of the snippet.
	Active time.Duration
	// Memory bounds the guest's memory, in bytes.
	Memory int64
	// Output bounds the kept part of stdout and stderr together, in bytes. Further output is
	// counted and dropped, and the snippet continues.
	Output int64
	// HostCalls bounds the number of host calls of one snippet.
	HostCalls int
	// HostCallsAtOnce bounds the concurrent host calls. Further calls wait.
	HostCallsAtOnce int
	// Fuel bounds work by a repeatable measure: see Usage.Fuel.
	Fuel uint64
}

// DefaultLimits returns the limits that apply if Limits is zero.
func DefaultLimits() Limits {
	return Limits{
		Wall:            30 * time.Second,
		Active:          30 * time.Second,
		Memory:          512 << 20,
		Output:          20_000,
		HostCalls:       10_000,
		HostCallsAtOnce: 64,
		Fuel:            1 << 50,
	}
}

// WithDefaults returns l with each zero field replaced by its default. If only Wall is set,
// Active equals Wall.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()

	if l.Wall == 0 {
		l.Wall = d.Wall
	}
	if l.Active == 0 {
		l.Active = l.Wall
	}
	if l.Memory == 0 {
		l.Memory = d.Memory
	}
	if l.Output == 0 {
		l.Output = d.Output
	}

	if l.HostCalls == 0 {
		l.HostCalls = d.HostCalls
	}
	if l.HostCallsAtOnce == 0 {
		l.HostCallsAtOnce = d.HostCallsAtOnce
	}
	if l.Fuel == 0 {
		l.Fuel = d.Fuel
	}

	return l
}

// Validate returns an error for the first negative field.
func (l Limits) Validate() error {
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"wall", int64(l.Wall)},
		{"active", int64(l.Active)},
		{"memory", l.Memory},
		{"output", l.Output},
		{"host calls", int64(l.HostCalls)},
		{"host calls at once", int64(l.HostCallsAtOnce)},
	} {
		if f.value < 0 {
			return fmt.Errorf(
				"limit %q is negative: give a positive value, or 0 for the default", f.name,
			)
		}
	}

	return nil
}

// Limit names a limit that was exceeded.
type Limit string

// The limits, as named in results.
const (
	LimitWall      Limit = "wall"
	LimitActive    Limit = "cpu"
	LimitMemory    Limit = "memory"
	LimitOutput    Limit = "output"
	LimitHostCalls Limit = "host_calls"
	LimitFuel      Limit = "fuel"
)

// Enforcement names the mechanism that enforces a limit.
type Enforcement struct {
	Limit     Limit  `json:"limit"`
	Value     string `json:"value"`
	Mechanism string `json:"mechanism"`
}
