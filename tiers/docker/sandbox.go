package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rlmhq/rlm/internal/golang"
	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/labels"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is one session. Its Python runs in one container, its Go in other containers.
type sandbox struct {
	*session.Machine
	python  *pykernel.Guest
	golang  *golang.Guest
	started int // the number of containers started for Python
}

var (
	_ tiers.Sandbox   = (*sandbox)(nil)
	_ tiers.Exporter  = (*sandbox)(nil)
	_ tiers.Collector = (*sandbox)(nil)
)

func open(ctx context.Context, t *tier, cfg tiers.Config) (tiers.Sandbox, error) {
	accounts, err := session.NewAccounts(ctx, cfg)
	if err != nil {
		return nil, err
	}
	files, paths := show(cfg.Inputs)
	accounts.ShowFiles(paths)
	if err := files.mount(cfg.Mounts); err != nil {
		return nil, err
	}

	reach := t.reach
	reach.Log = labels.AddTo(t.options.Log, cfg.Labels)
	proxy, err := egress.New(cfg.Hosts, reach)
	if err != nil {
		return nil, err
	}

	s := newSandbox(t, accounts, files, proxy)
	if cfg.Language == tiers.Go {
		return s, nil // Python starts on demand
	}
	if err := s.python.Renew(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}

	return s, nil
}

func newSandbox(t *tier, accounts *session.Accounts, files *shown, proxy *egress.Proxy) *sandbox {
	limits, out := accounts.Limits(), accounts.Config().Out
	n := needs{limits, files, out, proxy, accounts.Config().Labels}
	texts := accounts.ShowTexts(t.options.Log)
	if texts != nil {
		n.files = files.with(texts.Path(), session.TextsAt)
	}

	s := &sandbox{golang: t.newGoGuest(accounts, files)}
	s.python = &pykernel.Guest{
		Tier: Name, Accounts: accounts, MustOutlive: out,
		Start: func(ctx context.Context) (pykernel.Process, error) {
			s.started++
			p, err := t.claim(ctx, n)
			if err != nil && texts != nil && strings.Contains(err.Error(), texts.Path()) {
				// The daemon's file system differs from this process's.
				t.options.Log.Warn("long contexts cannot be a str in this sandbox", "error", err)
				n.files = files
				accounts.OfferMapping(nil)
				p, err = t.claim(ctx, n)
			}
			return p, err
		},
	}

	s.Machine = &session.Machine{
		Tier:     Name,
		Accounts: accounts,
		Guests: map[tiers.Language]session.Guest{
			tiers.Python: s.python, tiers.Go: s.golang,
		},
		Lacks: "it runs Python and Go only",
		Nouns: map[tiers.Language]string{tiers.Go: "program"},
		Enforced: map[tiers.Language][]tiers.Enforcement{
			tiers.Python: enforcedOnPython(limits), tiers.Go: enforcedOnGo(limits),
		},
	}

	if proxy != nil {
		s.Denials, s.Closers = proxy.Denials, []io.Closer{proxy}
	}
	if texts != nil {
		s.Closers = append(s.Closers, texts)
	}
	return s
}

// enforcedOnPython lists how each limit of a Python snippet is enforced.
func enforcedOnPython(l tiers.Limits) []tiers.Enforcement {
	const clock = "the host's clock, read every two milliseconds; KeyboardInterrupt, then SIGKILL"
	return []tiers.Enforcement{
		{Limit: tiers.LimitWall, Value: l.Wall.String(), Mechanism: clock},
		{Limit: tiers.LimitActive, Value: l.Active.String(), Mechanism: clock},
		{Limit: tiers.LimitMemory, Value: fmt.Sprintf("%d bytes", l.Memory), Mechanism: fmt.Sprintf(
			"RLIMIT_DATA for each process, MemoryError; the container's control group, %d bytes "+
				"for all, no swap",
			treeMemory(l.Memory),
		)},
		{
			Limit:     tiers.LimitOutput,
			Value:     fmt.Sprintf("%d bytes", l.Output),
			Mechanism: "the host counts and drops the rest",
		},
		{
			Limit:     tiers.LimitHostCalls,
			Value:     fmt.Sprint(l.HostCalls),
			Mechanism: "the host counts and refuses",
		},
	}
}
