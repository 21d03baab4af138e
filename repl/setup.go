package repl

// SetupError is the reason why a run could not begin: a model without a key, an invalid bound, a
// folder that holds another record. Nothing was asked, run or paid for.
type SetupError struct{ Err error }

// Error returns the reason.
func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *SetupError) Unwrap() error { return e.Err }
