// Package failures converts the errors of a server to the problems that its clients receive.
package failures

import (
	"errors"
	"net/http"

	"github.com/rlmhq/rlm/internal/text/problem"
)

// Of returns the error for a client. An error that is not meant for clients becomes an internal
// error; its message is only logged.
func Of(err error) *problem.Error {
	var known *problem.Error
	if errors.As(err, &known) {
		return known
	}

	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return problem.New(http.StatusRequestEntityTooLarge, "body_too_large",
			"the body has more than %d bytes: send less, or upload a file", tooLarge.Limit)
	}
	if IsDamage(err) {
		return problem.New(http.StatusInternalServerError, Damaged, "what the server has kept of this is damaged: "+
			"its log says what, and its operator finds it with rlm store check")
	}
	if IsDisk(err) {
		return problem.New(http.StatusInsufficientStorage, "disk_full",
			"the server's disk is full or cannot be written, so this was not kept; what was kept before is intact")
	}
	return problem.New(http.StatusInternalServerError, "internal", "the server failed: its log has the reason")
}

// Write sends an error to a client, in the format of RFC 9457.
func Write(w http.ResponseWriter, err error) { Of(err).Write(w) }
