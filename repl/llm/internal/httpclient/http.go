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
	// Attempts bounds the attempts whose replies are late, broken or malformed; 5. Such
	// replies may have cost their tokens.
	Attempts int
	// Outage is how long a call is made again after its first failure; 5 minutes, negative
	// for never. A server that has never answered gets 10 seconds at most.
	Outage      time.Duration
	FirstWait   time.Duration // the mean pause before the second attempt, then doubled; 0.5 s
	MaxWait     time.Duration // the longest pause that the server has not asked for; 15 s
	MaxResponse int64         // bytes of a reply; 16 MiB
	// AtOnce bounds the requests in flight to each server; 16 for ollama, else no bound. An
	// answer 429 lowers the bound, and successes raise it again.
	AtOnce int
	// AllowHTTP lets a key go to another host over a connection that is not encrypted.
	AllowHTTP bool
	Headers   map[string]string // sent with every request, such as HTTP-Referer for OpenRouter
	Transport http.RoundTripper // nil for one that each provider makes
	// Wait is called before the pause that precedes a further attempt; nil for no call.
	Wait func(err *llm.Error, pause time.Duration)
}
