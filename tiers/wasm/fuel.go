package wasm

import (
	"context"
	"runtime"
)

// slice is the fuel between two checks of the limits: 0.1 to 0.2 ms of work.
const slice = 40_000

// fuelUsed returns the exact fuel used: all finished slices and the used part of the current
// one.
func (in *instance) fuelUsed() uint64 {
	return in.burnt + uint64(int64(in.granted)-in.machine.fuel())
}

// refuel grants the guest its next slice, or the rest of the budget, after the guest has burnt the
// given fuel.
func (in *instance) refuel(burnt uint64) {
	in.burnt = burnt
	budget := in.accounts.Limits().Fuel
	in.granted = slice
	if budget > in.burnt {
		in.granted = min(slice, budget-in.burnt)
	}
	in.machine.setFuel(int64(in.granted))
}

// hostYield runs when the guest has used up a slice.
func hostYield(_ context.Context, in *instance, _ []uint64) {
	in.refuel(in.fuelUsed()) // a copy may use more fuel than was left in the slice
	in.accounts.BurnFuel(in.burnt)
	in.accounts.Yield()
	runtime.Gosched() // Go cannot interrupt a guest: let the host's other work run
	in.checkFaults()
	in.watchLimits()
}

// preempt runs when a guest has computed for long without a yield: either it waited for a
// processor, or its code uses too little fuel. It changes nothing in the guest, so it raises no
// KeyboardInterrupt.
func (in *instance) preempt() {
	in.accounts.Yield()
	runtime.Gosched()
	in.checkFaults()
	if in.accounts.Watch(func() {}) {
		panic(errKilled)
	}
}

// checkFaults stops a guest whose faults would no longer become traps: see [aot.Program.Check].
func (in *instance) checkFaults() {
	if err := in.engine.program.Check(); err != nil {
		panic(err)
	}
}

// watchLimits stops a guest at its limits, or if its caller cancelled the run.
func (in *instance) watchLimits() {
	if in.accounts.Watch(in.interrupt) {
		panic(errKilled)
	}
}
