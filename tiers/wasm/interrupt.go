package wasm

// interrupt raises KeyboardInterrupt at the guest's next bytecode boundary, in the running
// thread. The class is immortal, so writing its address needs no reference.
func (in *instance) interrupt() {
	in.isInterrupted = true
	l := in.engine.layout
	if at := in.threads.running.address; at != 0 { // the first words of its thread_t
		l.EvalBreaker = in.word(at)
		l.AsyncExc = in.word(at + 4)
	}
	in.setWord(l.AsyncExc, l.Interrupt)
	breaker := in.word(l.EvalBreaker)
	in.setWord(l.EvalBreaker, breaker|l.AsyncBit)
}

// clearInterrupt withdraws an interrupt that arrived after its target had ended.
func (in *instance) clearInterrupt() {
	if !in.isInterrupted {
		return
	}
	in.isInterrupted = false
	l := in.engine.layout
	in.setWord(l.AsyncExc, 0)
	breaker := in.word(l.EvalBreaker)
	in.setWord(l.EvalBreaker, breaker&^l.AsyncBit)
}
