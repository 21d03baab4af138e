package cli

// NoteUnread writes one note if stdin has data that the command does not read. It does not wait for
// data or consume any. Stdin must not be a context.
func (e *Env) NoteUnread(note func(format string, args ...any)) {
	if e.noted || e.Input == nil || e.Terminal || e.hasBegunInput() || !isGiven(e.Input) {
		return
	}

	e.noted = true
	note("stdin has data that nothing reads: to work on it, pass --context -")
}

// hasBegunInput reports whether the command has read from stdin.
func (e *Env) hasBegunInput() bool {
	r, ok := e.Stdin.(*interruptReader)
	return !ok || r.begun.Load()
}
