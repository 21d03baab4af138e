// Package python analyses Python snippets with CPython's own parser.
//
// The parser runs in sandboxes of the WebAssembly tier that are reserved for the analyser: they run
// analyse.py and nothing else. These sandboxes receive the source of a snippet as data, in the
// answer to a host call, and parse it but never execute it. So the analyser accepts exactly the
// Python that the tiers run, and a snippet that breaks the parser does not break a session's
// sandbox.
//
// Verdicts are cached by the hash of their source and shared between callers, who must not change
// them.
package python

import (
	"context"
	"crypto/sha256"
	_ "embed" // the analyser's guest
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/fairqueue"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

const (
	// maxSource bounds a snippet, in bytes. The analysis of such a snippet takes about 0.2 s.
	// Models write a tenth of that.
	maxSource = 128 << 10
	// maxVerdict bounds an answer of the analyser, in bytes.
	maxVerdict = 64 << 10
	// maxCached bounds the cached verdicts, in bytes.
	maxCached = 16 << 20
	// maxWaiting bounds the waiting snippets of one tenant.
	maxWaiting = 1024
)

// limits bounds one analysis. The longest source takes a tenth of the time limit.
var limits = tiers.Limits{Wall: 2 * time.Second, Memory: 128 << 20, HostCalls: 1}

// The source of the analyser's guest, which runs in one namespace in this order.
var (
	//go:embed tables.py
	tablesSource string
	//go:embed analyse.py
	analyseSource string
	//go:embed kinds.py
	kindsSource string
	//go:embed reach.py
	reachSource string
	//go:embed effort.py
	effortSource string
)

// Analyser determines the needs of Python snippets. It is safe for concurrent use.
type Analyser struct {
	pool    *pool
	cache   *cache
	flights flights
}

// New returns an analyser with sandboxes of tier, which must run Python and outlive the analyser.
// It does not open a sandbox yet.
func New(tier tiers.Tier) *Analyser {
	return &Analyser{
		pool: newPool(tier), cache: newCache(maxCached),
		flights: flights{now: map[[sha256.Size]byte]*flight{}},
	}
}

// Close closes the sandboxes. It waits for running analyses; later ones fail.
func (a *Analyser) Close() error { return a.pool.close() }

// Analyse returns the needs of the snippet. The verdict is shared, so treat it as immutable.
func (a *Analyser) Analyse(ctx context.Context, source string) (router.Verdict, error) {
	if len(source) > maxSource {
		return router.Verdict{
			Unknown: fmt.Sprintf("the snippet is too long to analyse: it has %d bytes, the limit is %d",
				len(source), maxSource),
		}, nil
	}

	key := sha256.Sum256([]byte(source))
	if v, ok := a.cache.get(key); ok {
		return v, nil
	}

	v, err := a.flights.wait(ctx, key, func(ctx context.Context) (router.Verdict, error) {
		v, size, err := a.pool.analyse(ctx, source)
		if err == nil && size > 0 {
			a.cache.put(key, v, size)
		}
		return v, err
	})
	switch {
	case errors.Is(err, fairqueue.ErrFull):
		return router.Verdict{Unknown: "too many snippets wait for the analyser"}, nil
	case err != nil:
		return router.Verdict{}, fmt.Errorf("cannot analyse the snippet: %w", err)
	}
	return v, nil
}

// decodeVerdict decodes the guest's answer. It enforces the rule that exactly one field of a
// verdict is set.
func decodeVerdict(data []byte) (router.Verdict, error) {
	if len(data) > maxVerdict {
		return router.Verdict{Unknown: "the snippet needs more than a plan can list"}, nil
	}
	var v router.Verdict
	if err := json.Unmarshal(data, &v); err != nil {
		return router.Verdict{}, fmt.Errorf("cannot read the analyser's answer: %w", err)
	}

	set := 0
	for _, is := range []bool{v.Needs != nil, v.Invalid != nil, v.Unknown != ""} {
		if is {
			set++
		}
	}

	if set != 1 {
		return router.Verdict{}, errors.New("the analyser's answer is not one verdict")
	}
	return v, nil
}
