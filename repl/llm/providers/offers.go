package providers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/rlmhq/rlm/internal/keep/keyring"
	"github.com/rlmhq/rlm/internal/text/spelling"
	"github.com/rlmhq/rlm/repl/llm"
)

// Offer describes a provider and its models, or why this machine cannot use it.
type Offer struct {
	Provider string `json:"provider"`
	// Server is the address of its server.
	Server string `json:"server,omitempty"`
	// Key is the origin of its key: an environment variable, the settings, a keyring or a file. It
	// is empty without a key.
	Key string `json:"key,omitempty"`
	// Models are the full names of its models. If its server was not asked, Example is set, and the
	// only name is an example.
	Models  []string `json:"models"`
	Example bool     `json:"example,omitempty"`
	// Problem explains why the provider cannot be used and what to change. It is empty if the
	// provider can be used.
	Problem string `json:"problem,omitempty"`
	// Refused reports whether the problem is that the server refused the key or requires one.
	Refused bool `json:"refused,omitempty"`
}

// Bounds of the question for a server's models.
const (
	probeTime   = 300 * time.Millisecond // of servers that might not exist
	givenTime   = 2 * time.Second        // of servers whose address was given
	askTime     = 15 * time.Second       // of the servers of named providers
	maxModels   = 2_000                  // of each server
	maxName     = 200                    // bytes of a name
	maxListSize = 4 << 20                // bytes of a list
)

// Offers lists the providers that can be used here: those that have a key or an address, and those
// whose server answers on this machine. It asks all servers on this machine for their models,
// concurrently, and no other server. It waits 300 ms for those that might not exist, and 2 s for
// those whose address was given.
//
// If providers are named, it lists only these, and asks their servers wherever they run. The error
// names an unknown provider or a file that cannot be read.
func Offers(ctx context.Context, o Options, named ...string) ([]Offer, error) {
	o.Record, o.Replay = "", "" // servers are asked, and nothing is recorded
	registry, err := New(o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = registry.Close() }() // the registry has no connections

	for _, name := range named {
		if _, ok := vendorOf(name); !ok {
			return nil, unknownProvider(name)
		}
	}

	if _, err := (keyring.Ring{File: o.KeyFile}).List(); err != nil {
		return nil, err
	}

	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	o.HTTP.Attempts, o.HTTP.Outage, o.HTTP.MaxResponse = 1, -1, maxListSize
	b := &builder{Options: o}

	offers := make([]*Offer, len(vendors))
	var all sync.WaitGroup
	for i, v := range vendors {
		isNamed := slices.Contains(named, v.name)
		if len(named) == 0 || isNamed {
			all.Go(func() { offers[i] = b.offer(ctx, v, isNamed) })
		}
	}
	all.Wait()

	var found []Offer
	for _, offer := range offers {
		if offer != nil {
			found = append(found, *offer)
		}
	}
	return found, ctx.Err()
}

// unknownProvider returns the error for a name that is not a provider's.
func unknownProvider(name string) error {
	meant := findProvider(name)
	if meant == "" {
		meant = spelling.Nearest(strings.ToLower(name), Names())
	}
	if meant != "" {
		return fmt.Errorf("unknown provider %.40q: did you mean %s?", name, meant)
	}
	return fmt.Errorf("unknown provider %.40q: give one of %s", name, strings.Join(Names(), ", "))
}

// offer returns the Offer of a provider, or nil if nothing suggests that the user has access to it.
func (b *builder) offer(ctx context.Context, v vendor, isNamed bool) *Offer {
	at, err := b.locate(v)
	offer := &Offer{Provider: v.name, Server: withoutUser(at.base), Key: at.keyFrom, Models: []string{}}
	isMeant := isNamed || at.isGiven || at.keyFrom != ""

	switch {
	case err != nil && !isMeant:
		return nil
	case err != nil:
		offer.Problem = explain(err)
		return offer
	case v.format == azureFormat: // its server does not list the names of deployments
		offer.Models, offer.Example = []string{v.name + "/" + v.example}, true
		return offer
	case !isNamed && !at.isHere():
		if !isMeant {
			return nil
		}
		offer.Example = true
		if !at.isGiven {
			offer.Models = []string{v.name + "/" + v.example}
		}
		return offer
	}

	names, err := b.ask(ctx, v, at, isNamed)
	if err != nil && !isMeant && !isRefusal(err) {
		return nil
	}
	if err != nil {
		offer.Problem, offer.Refused = explain(err), isRefusal(err)
	}

	for _, name := range names {
		offer.Models = append(offer.Models, v.name+"/"+name)
	}
	return offer
}

// ask asks a server for the names of its models, and drops names that cannot be names of models.
func (b *builder) ask(ctx context.Context, v vendor, at place, isNamed bool) ([]string, error) {
	asking := *b
	switch {
	case isNamed:
		asking.HTTP.Timeout = askTime
	case at.isGiven:
		asking.HTTP.Timeout = givenTime
	default:
		asking.HTTP.Timeout = probeTime
	}
	server, err := asking.open(v, at)
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Close() }() // the server only listed its models

	names, err := server.Models(ctx)
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == "" || len(name) > maxName || strings.ContainsFunc(name, isUnprintable)
	})
	return names[:min(len(names), maxModels)], err
}

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }

// isRefusal reports whether a model server refused the key or requires one.
func isRefusal(err error) bool {
	var failed *llm.Error
	return errors.As(err, &failed) && (failed.Status == 401 || failed.Status == 403)
}

// explain returns the message of an error without the provider.
func explain(err error) string {
	var failed *llm.Error
	if !errors.As(err, &failed) {
		return err.Error()
	}

	text := failed.Kind.Error()
	if failed.Message != "" {
		text += ": " + failed.Message
	}
	if failed.Err != nil {
		text += ": " + failed.Err.Error()
	}
	return text
}

// withoutUser returns an address without user, password and query.
func withoutUser(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
