package services

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/internal/wall/acme"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server"
	"github.com/rlmhq/rlm/tiers"
)

const serveLong = `Serve runs over HTTP, for the clients of OpenAI and Anthropic. They use the
address http://127.0.0.1:7070/v1, Anthropic's without /v1, and the model rlm/default. MCP
hosts use /mcp.

Without --model, the server runs code in sessions and for MCP hosts, and refuses questions.

The model answers a short message directly. A request with a long message, a file
or the tool code_interpreter starts a run, whose snippets read the long texts and files.

The settings of models, budgets and tiers make the profile default. --profile adds others,
each from a configuration file whose settings win over all others.

Requests of this machine need no key. Any other address needs keys ("rlm keys create") and
TLS. Snippets of tier wasm run in workers: jailed processes without keys, each for one tenant.
After SIGTERM or Ctrl-C, runs have the time of --drain to end; the next server continues the
rest.

Exit codes: 0 stopped; 2 usage, bad settings or models that cannot be asked; 5 the server
broke.`

// serveFlags are the flags of rlm serve that are not settings.
type serveFlags struct {
	listen   string
	data     wiring.DataFlag
	profiles []string // NAME=FILE
	tools    wiring.ToolFlags

	cert, key       string
	acme, email     string
	acceptTerms     bool
	hosts, origins  []string
	needKey, noKeys bool
	noTLS           bool
	inProcess       bool
	allowNested     bool

	atOnce, queue            int
	sessions, openSessions   int
	connections              int
	memory                   wiring.Size // the memory of all workers together
	maxBody, maxFile, maxCtx wiring.Size
	long                     wiring.Size
	drain, keep              time.Duration
	check                    bool
	quiet                    bool
}

// NewServe makes the command rlm serve.
func NewServe(e *cli.Env) *cobra.Command {
	f := serveFlags{maxBody: 64e6, maxFile: 1e9, maxCtx: 8e9, long: 32e3}
	f.tools.Ask = askFirst
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve runs over HTTP, for clients of OpenAI and Anthropic", Long: serveLong,
		Example: `  rlm serve --model openai/gpt-5 --sub-model openai/gpt-5-mini
  rlm serve --profile deep=deep.yaml --max-usd 2
  rlm serve --listen :7443 --tls-cert cert.pem --tls-key key.pem --host rlm.example.org
  rlm serve --listen :443 --acme letsencrypt --acme-accept-terms --host rlm.example.org`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, e) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:7070", "`address` to serve at")
	f.data.Add(flags)
	flags.StringArrayVar(&f.profiles, "profile", nil,
		"`NAME=FILE`: another profile, with the settings of a configuration file; repeatable")
	f.tools.Add(flags, e)
	flags.StringVar(&f.cert, "tls-cert", "", "`file` with the certificate and its chain, in PEM")
	flags.StringVar(&f.key, "tls-key", "", "`file` with the certificate's key, in PEM")
	flags.StringVar(&f.acme, "acme", "",
		"`authority` that certifies each --host: letsencrypt, letsencrypt-staging or a directory's address")
	flags.BoolVar(&f.acceptTerms, "acme-accept-terms", false, "accept the terms of the authority")
	flags.StringVar(&f.email, "acme-email", "", "`address` to which the authority sends warnings")
	flags.StringArrayVar(&f.hosts, "host", nil, "`name` by which clients call the server; repeatable")
	flags.StringArrayVar(&f.origins, "allow-origin", nil,
		"`origin` of web pages that may use the server, such as https://chat.example.org; repeatable")
	flags.BoolVar(&f.needKey, "require-key", false, "ask for keys also on this machine, for example behind a proxy")
	flags.BoolVar(&f.noKeys, "insecure-no-keys", false, "serve any address without keys and TLS")
	flags.BoolVar(&f.noTLS, "insecure-no-tls", false,
		"serve any address with keys, but without TLS: for a container behind a proxy")
	flags.BoolVar(&f.allowNested, "allow-nested", false,
		"accept workers without namespaces, as in most containers: only Landlock and seccomp confine them")
	flags.BoolVar(&f.inProcess, "insecure-no-workers", false,
		"run snippets of tier wasm in the process of the server, which holds the keys")
	flags.IntVar(&f.atOnce, "max-runs", 16, "maximum `number` of runs at the same time, and of direct answers")
	flags.IntVar(&f.queue, "max-queue", 256, "maximum `number` of runs that wait, and of direct answers")
	flags.IntVar(&f.sessions, "max-sessions", 10_000, "maximum `number` of sessions, including those on the disk")
	flags.IntVar(&f.openSessions, "max-open-sessions", 64, "maximum `number` of open sessions; others rest on the disk")
	flags.Var(&f.memory, "workers-memory",
		"`size` of the memory of all workers, of which a tenant may have three quarters "+
			"(default: three quarters of this machine's)")
	flags.IntVar(&f.connections, "max-connections", 4096, "maximum `number` of clients' connections")
	flags.Var(&f.maxBody, "max-body", "maximum `size` of a request")
	flags.Var(&f.maxFile, "max-file", "maximum `size` of an uploaded file")
	flags.Var(&f.maxCtx, "max-context", "maximum `size` of a context, unpacked")
	flags.Var(&f.long, "long", "`size` above which messages become contexts of a run")
	flags.DurationVar(&f.drain, "drain", 30*time.Second, "`time` for runs to end when the server stops")
	flags.DurationVar(&f.keep, "keep-runs", 0,
		"`time` after which runs that have ended are deleted, such as 720h (default: never)")
	flags.BoolVar(&f.check, "check", false, "check the settings, models and data, then exit")
	flags.BoolVar(&f.quiet, "quiet", false, "print errors on stderr, but no notes")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Sessions, config.Models, config.Run, config.Graphs))
	return cmd
}

// serveGrace is the time after --drain in which a server saves sessions and closes sandboxes.
const serveGrace = 30 * time.Second

// run serves until the command is interrupted.
func (f *serveFlags) run(cmd *cobra.Command, e *cli.Env) (err error) {
	ctx, note := cmd.Context(), e.NoteUnless(f.quiet)
	e.EndWithin(f.drain + serveGrace)
	isLocal, secure, err := f.checkAddress()
	if err != nil {
		return cli.Usage(err)
	}
	dir, err := f.data.Find()
	if err != nil {
		return cli.Usage(err)
	}

	data := server.Folder(dir)
	claim, err := data.Claim(ctx, "rlm serve", f.listen)
	var inUse *server.InUseError
	isBeside := errors.As(err, &inUse) && f.check // a check of the settings, alongside a running server
	if err != nil && !isBeside {
		return cli.Usage(err)
	}
	defer func() { err = errors.Join(err, letGo(claim)) }()
	certs, secure, err := f.openCertificates(dir, secure, e.Log)
	if err != nil {
		return err
	}

	e.Settings.Store = data.Store()
	engine, err := f.openEngine(ctx, e, note)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	tools, err := f.tools.Open(ctx, e, note)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.Close()) }()
	known, err := f.openProfiles(e, cmd.Flags(), tools)
	if err != nil {
		return cli.Usage(err)
	}
	defer known.close()
	noteMemory(engine, known, note)

	if isBeside {
		if err := (&server.Options{Profiles: known.list}).Check(ctx, engine); err != nil {
			return cli.Usage(err)
		}
		note("the settings are right: %d profiles; the data was not checked: %v", len(known.list), inUse)
		return nil
	}

	s, err := server.New(ctx, engine, f.options(e, known, tools, server.Options{
		Dir: data, Claim: claim, Open: isLocal && !f.needKey || f.noKeys,
	}))
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := f.serve(ctx, s, secure, certs, note); err != nil {
		return err
	}
	e.EndEcho()
	note("stopped")
	return nil
}

// options returns base, completed by the flags.
func (f *serveFlags) options(e *cli.Env, known *profiles, tools *wiring.Tools, base server.Options) server.Options {
	base.Profiles, base.AtOnce, base.Queue = known.list, f.atOnce, f.queue
	base.Sessions, base.OpenSessions, base.Connections = f.sessions, f.openSessions, f.connections
	base.MaxBody, base.MaxFile, base.MaxContext = int64(f.maxBody), int64(f.maxFile), int64(f.maxCtx)
	base.Long, base.Keep, base.Hosts, base.Origins = int(f.long), f.keep, f.hosts, f.origins
	base.Inputs = inputs.Options{MaxUnpacked: int64(f.maxCtx), CacheDir: e.Settings.CacheDir}
	base.MCP, base.Servers, base.Load = true, tools.Servers, tools.Load
	base.Version, base.Log = e.Version, e.Log
	return base
}

// noteModels notes each unknown fact about the profiles' models once, or that there is no model.
func noteModels(profiles []server.Profile, note func(string, ...any)) {
	noted := map[string]bool{}
	for i := range profiles {
		cfg := &profiles[i].Task.Config
		if !profiles[i].HasModel() {
			note("there is no model, so the server runs code but answers no questions: give --model; " +
				"rlm models lists the models that are available here")
			continue
		}
		for _, text := range ledger.Warnings(cfg.Models, wiring.ModelNames(cfg)...) {
			if !noted[text] {
				note("%s", text)
			}
			noted[text] = true
		}
	}
}

// openCertificates returns the certificates of the flags' authority, and a configuration that uses
// them. Without an authority, it returns the given configuration.
func (f *serveFlags) openCertificates(
	dir string, given *tls.Config, log *slog.Logger,
) (*acme.Certificates, *tls.Config, error) {
	if f.acme == "" {
		return nil, given, nil
	}

	certs, err := acme.New(acme.Options{
		Hosts: f.hosts, Authority: f.acme, Email: f.email, Dir: filepath.Join(dir, "acme"), Log: log,
	})
	if err != nil {
		return nil, nil, cli.Usage(fmt.Errorf("--acme: %w", err))
	}
	secure := certs.Config()
	return certs, secure, nil
}

// letGo releases the data folder. claim is nil if a check runs while a server uses the folder.
func letGo(claim io.Closer) error {
	if claim == nil {
		return nil
	}
	return claim.Close()
}

// openEngine returns an engine with tier wasm in workers, unless the flags forbid it.
func (f *serveFlags) openEngine(
	ctx context.Context, e *cli.Env, note func(string, ...any),
) (*rlm.Engine, error) {
	if f.inProcess {
		return wiring.OpenEngine(ctx, e, note)
	}

	return wiring.OpenEngine(ctx, e, note, func(o *rlm.Options) {
		all := o.Tiers
		o.Tiers = func(wasm tiers.Tier) ([]tiers.Tier, error) {
			inWorkers, err := f.useWorkers(ctx, e, wasm)
			if err != nil {
				return nil, err
			}
			list, err := all(inWorkers)
			if err != nil {
				return nil, errors.Join(err, inWorkers.Close())
			}
			return list, nil
		}
	})
}

// useWorkers moves tier wasm into worker processes.
func (f *serveFlags) useWorkers(ctx context.Context, e *cli.Env, wasm tiers.Tier) (tiers.Tier, error) {
	inWorkers, err := server.Workers{
		Memory: int64(f.memory), Engine: e.Settings.Engine, AllowSampled: e.Settings.AllowSampled,
		AllowNested: f.allowNested, Log: e.Log,
	}.Start(ctx, wasm)
	if err != nil {
		return nil, fmt.Errorf("%w; or pass --insecure-no-workers; then a flaw in the WebAssembly "+
			"compiler can expose the keys", err)
	}
	return inWorkers, nil
}

// noteMemory reports which sessions get less memory than the settings allow.
func noteMemory(engine *rlm.Engine, known *profiles, note func(string, ...any)) {
	for _, tier := range engine.Tiers() {
		inWorkers, is := tier.(interface{ MostMemory() int64 })
		if !is {
			continue
		}
		for i := range known.list {
			p := &known.list[i]
			want, most := p.Task.Config.Limits.WithDefaults().Memory, inWorkers.MostMemory()
			if want > most {
				note("a session of profile %s may use %s of memory in tier wasm, not %s: raise --workers-memory",
					p.Name, quantity.IBytes(most), quantity.IBytes(want))
			}
		}
	}
}

// checkAddress refuses settings that would let anyone use the server. It reports whether only this
// machine can reach the address.
func (f *serveFlags) checkAddress() (isLocal bool, secure *tls.Config, err error) {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return false, nil, fmt.Errorf("--listen %s: %w", f.listen, err)
	}

	ip := net.ParseIP(host)
	isLocal = host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case (f.cert == "") != (f.key == ""):
		return false, nil, errors.New("give both --tls-cert and --tls-key")
	case f.acme != "" && f.cert != "":
		return false, nil, errors.New("give --tls-cert or --acme, not both")
	case f.acme != "" && !f.acceptTerms:
		return false, nil, errors.New("--acme needs --acme-accept-terms: read the terms of the authority first, " +
			"such as https://letsencrypt.org/repository")
	case !isLocal && f.cert == "" && f.acme == "" && !f.noKeys && !f.noTLS:
		return false, nil, fmt.Errorf("--listen %s: others can reach this address, and would read the keys on "+
			"their way: give --tls-cert and --tls-key, or --acme, or listen on 127.0.0.1 behind a proxy with TLS",
			f.listen)
	case f.sessions < 1 || f.openSessions < 1:
		return false, nil, errors.New("give a positive --max-sessions and --max-open-sessions")
	case f.connections < 8:
		return false, nil, errors.New("give a --max-connections of at least 8")
	case f.atOnce < 1 || f.queue < 0:
		return false, nil, errors.New("give a positive --max-runs, and a --max-queue of at least 0")
	case f.keep < 0:
		return false, nil, errors.New("give a positive time to --keep-runs, or 0 to keep them")
	}

	for _, origin := range f.origins {
		if !strings.HasPrefix(origin, "https://") && !strings.HasPrefix(origin, "http://") ||
			strings.Count(origin, "/") != 2 {
			return false, nil, fmt.Errorf(
				"--allow-origin %q: give a scheme and a host, such as https://chat.example.org", origin)
		}
	}

	for i, name := range f.hosts {
		f.hosts[i] = strings.ToLower(name)
	}

	if f.cert == "" {
		return isLocal, nil, nil
	}

	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return false, nil, fmt.Errorf("cannot use the certificate %s: %w", f.cert, err)
	}
	return isLocal, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// serve checks the server, and then serves requests.
func (f *serveFlags) serve(
	ctx context.Context, s *server.Server, secure *tls.Config, certs *acme.Certificates, note func(string, ...any),
) error {
	if err := s.Check(ctx); err != nil {
		return cli.Usage(err)
	}
	has, err := s.HasKeys(ctx)
	if err == nil && !has && !s.Open {
		err = errors.New("there is no key, so no request could pass: make one with rlm keys create")
	}
	if err != nil {
		return cli.Usage(err)
	}
	noteModels(s.Profiles, note)
	if f.check {
		note("the server can start: %d profiles, data in %s", len(s.Profiles), s.Dir)
		return nil
	}

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return cli.Usage(fmt.Errorf("--listen %s: %w", f.listen, err))
	}
	if err := s.Recover(ctx); err != nil {
		return cli.Broken(errors.Join(err, listener.Close()))
	}
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}

	if certs != nil {
		go certs.Fetch(ctx)
	}
	note("serves %s://%s/v1", scheme, listener.Addr())
	if err := s.Serve(ctx, listener, secure, f.drain); err != nil {
		return cli.Broken(err)
	}
	return nil
}
