package egress

import (
	"io"
	"net/http"
)

// Hiding returns a reader of a body that hides a credential.
func Hiding(body io.ReadCloser, value string) io.Reader {
	known, _ := newCredentials(map[string]http.Header{"example.com:443": {"A": {value}}})
	for _, one := range known {
		return &hiding{ReadCloser: body, credentials: one, end: func() {}}
	}
	return nil
}
