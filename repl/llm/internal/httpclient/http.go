package httpclient

import (
	"net/http"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
)

// HTTP sets timeouts, retries and limits of requests to a model server. Zero values mean the
// defaults.
type HTTP struct {
	Timeout time.Duration // for one attempt, until the last byte of the reply; 10 minutes
	// Attempts bounds the attempts whose replies are late, broken or malformed; 5. The tokens of
	// such replies may have to be paid for.
	Attempts int
	// Outage is the time for which a call is retried after its first failure; 5 minutes, negative
	// for none. It is at most 10 seconds for a server that never answered.
	Outage      time.Duration
	FirstWait   time.Duration // the mean pause before the second attempt, then doubled; 0.5 s
	MaxWait     time.Duration // the longest pause not requested by the server; 15 s
	MaxResponse int64         // bytes of a reply; 16 MiB
	// AtOnce bounds the requests in flight to each server; 16 for ollama, otherwise unbounded. A
	// 429 lowers the bound, and successes raise it again.
	AtOnce int
	// AllowHTTP allows a key to be sent unencrypted to another host.
	AllowHTTP bool
	Headers   map[string]string // sent with every request, such as HTTP-Referer for OpenRouter
	Transport http.RoundTripper // nil for one per provider
	// Wait is called before each pause that precedes a further attempt; it may be nil.
	Wait func(err *llm.Error, pause time.Duration)
}
