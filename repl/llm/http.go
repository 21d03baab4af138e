package llm

import (
	"net/http"
	"time"
)

// HTTP says how a provider talks to its server. The zero value has the defaults.
type HTTP struct {
	Timeout     time.Duration // of one attempt, from sending to the reply's last byte; 10 minutes if 0
	Attempts    int           // how often a request is made at most; 5 if 0
	FirstWait   time.Duration // the mean pause before the second attempt, doubled for each further one; half a second if 0
	MaxWait     time.Duration // the longest pause; a server that asks for more is not waited for; 1 minute if 0
	MaxResponse int64         // bytes of a reply; 16 MiB if 0
	// AllowHTTP lets a key go over a connection that is not encrypted, to
	// another host than this one.
	AllowHTTP bool
	Headers   map[string]string // sent with every request, such as HTTP-Referer for OpenRouter
	Transport http.RoundTripper // nil for one of the provider's own
	// Wait is told of each pause before a further attempt, for logs; nil if
	// nobody wants to know.
	Wait func(err *Error, pause time.Duration)
}
