// Package kind names the kinds of failure of a model call.
//
// Scripts and call logs refer to a kind by its string, so these strings are part of their formats
// and never change.
package kind

// Error is one kind of failure. It is a target for errors.Is.
type Error string

// Error returns the kind as a string.
func (e Error) Error() string { return string(e) }

// Failures before a request is sent.
const (
	ErrNoKey         Error = "no key"
	ErrUnknownName   Error = "unknown provider" // the part of a name before the slash
	ErrMisconfigured Error = "bad configuration"
	ErrBadFile       Error = "bad file" // a script, call log or price table that cannot be read
	ErrNoReply       Error = "no reply on file"
)

// Failures that the server reports.
const (
	ErrAuth          Error = "key refused"    // or the key may not use the model
	ErrQuota         Error = "no credit left" // waiting does not help
	ErrRateLimited   Error = "rate limited"   // waiting helps
	ErrUnknownModel  Error = "unknown model"
	ErrBadRequest    Error = "bad request"       // any other mistake in the request
	ErrContextLength Error = "prompt too long"   // for the model's window
	ErrRefused       Error = "refused by filter" // the prompt did not reach the model
	ErrServer        Error = "server error"
)

// Failures of the connection or of the reply.
const (
	ErrUnreachable Error = "server not reachable"
	ErrTimeout     Error = "no reply in time"
	ErrCut         Error = "reply cut off"
	ErrMalformed   Error = "malformed reply"      // not in the server's own format
	ErrTooLarge    Error = "reply too large"      // in bytes
	ErrRedirect    Error = "redirected elsewhere" // not followed, as this would send prompt and key
)

// all holds the kinds of this package.
var all = []Error{
	ErrNoKey, ErrUnknownName, ErrMisconfigured, ErrBadFile, ErrNoReply,
	ErrAuth, ErrQuota, ErrRateLimited, ErrUnknownModel, ErrBadRequest, ErrContextLength,
	ErrRefused, ErrServer,
	ErrUnreachable, ErrTimeout, ErrCut, ErrMalformed, ErrTooLarge, ErrRedirect,
}

var byText = index(all)

// index maps the string of each kind to the kind.
func index(kinds []Error) map[string]Error {
	found := make(map[string]Error, len(kinds))
	for _, kind := range kinds {
		found[kind.Error()] = kind
	}
	return found
}

// Find returns the kind with the given string, or false if there is none.
func Find(text string) (Error, bool) {
	kind, ok := byText[text]
	return kind, ok
}
