// Package python analyses Python snippets by CPython's own parser.
//
// The parser runs in sandboxes of the WebAssembly tier that the analyser keeps for
// itself: they run analyse.py and nothing else. The text of a snippet reaches them as the
// answer to a host call, as data, and is parsed but never executed. So the analyser
// accepts exactly the Python that the tiers run, and a snippet that breaks the parser
// breaks no session's sandbox.
//
// Verdicts are cached under the hash of their source and shared between callers. They
// must not be changed.
package python

import (
	"context"
	"crypto/sha256"
	_ "embed" // the analyser's guest
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

const (
	// maxSource is how long a snippet may be, in bytes. Models write a hundredth of it.
	maxSource = 1 << 20
	// maxCached is how many verdicts are kept: some kilobytes each.
	maxCached = 1024
)

// limits bound one analysis. The longest source takes half of it.
var limits = tiers.Limits{Wall: 2 * time.Second, Memory: 128 << 20, HostCalls: 1}

// The analyser's guest: one namespace, in this order.
var (
	//go:embed tables.py
	tablesSource string
	//go:embed analyse.py
	analyseSource string
	//go:embed kinds.py
	kindsSource string
	//go:embed effort.py
	effortSource string
)

// Analyser finds out what Python snippets need. It is safe for concurrent use.
type Analyser struct {
	pool   *pool
	cache  *cache
	flight singleflight.Group
}

var _ router.Analyser = (*Analyser)(nil)

// New returns an analyser with sandboxes of tier, which must run Python and outlive it.
// It opens none yet.
func New(tier tiers.Tier) *Analyser {
	return &Analyser{pool: newPool(tier), cache: newCache(maxCached)}
}

// Close closes the sandboxes. It waits for analyses under way; later ones fail.
func (a *Analyser) Close() error { return a.pool.close() }

// Analyse returns what the snippet needs. The verdict is shared: treat it as immutable.
func (a *Analyser) Analyse(ctx context.Context, source string) (router.Verdict, error) {
	if len(source) > maxSource {
		return router.Verdict{
			Unknown: fmt.Sprintf("it is too long to analyse: %d bytes, the limit is %d",
				len(source), maxSource),
		}, nil
	}

	key := sha256.Sum256([]byte(source))
	if v, ok := a.cache.get(key); ok {
		return v, nil
	}

	// Callers that ask for the same text at the same time wait for one analysis. It goes
	// on when one of them gives up: it takes two seconds at most.
	done := a.flight.DoChan(string(key[:]), func() (any, error) {
		v, keep, err := a.pool.analyse(context.WithoutCancel(ctx), source)
		if err == nil && keep {
			a.cache.put(key, v)
		}
		return v, err
	})
	select {
	case r := <-done:
		if r.Err != nil {
			return router.Verdict{}, fmt.Errorf("cannot analyse the snippet: %w", r.Err)
		}
		return r.Val.(router.Verdict), nil
	case <-ctx.Done():
		return router.Verdict{}, fmt.Errorf("cannot analyse the snippet: %w", context.Cause(ctx))
	}
}

// decodeVerdict reads what the guest answered. It keeps the rule that exactly one field
// of a verdict is set.
func decodeVerdict(data []byte) (router.Verdict, error) {
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
