package repl

// SetupError says why a run could not begin: a model without a key, a bound that makes
// no sense, a folder that holds another record. Nothing was asked, run or paid for.
type SetupError struct{ Err error }

// Error is the reason.
func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *SetupError) Unwrap() error { return e.Err }
