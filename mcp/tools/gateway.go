package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"github.com/rlmhq/rlm/tiers"
)

// Gateway passes on the prompts and resources of servers to hosts, because hosts offer them to
// people rather than to a model. It also passes on the tools that the user selects, as [Direct].
type Gateway struct {
	servers *Servers
	allow   func(context.Context, tiers.Call) error
	direct  []Direct
	skipped []string

	prompts   map[string]*passed[*mcp.Prompt]           // by name
	resources map[string]*passed[*mcp.Resource]         // by URI
	templates map[string]*passed[*mcp.ResourceTemplate] // by template

	mu       sync.Mutex
	host     *mcp.Server
	watchers map[string]int // number of watchers by the resource's URI
}

// passed is an object that a server provides. Its name for hosts may differ.
type passed[T any] struct {
	server *server
	given  string
	what   T
}

// maxWatched is the maximum number of resources to which hosts subscribe.
const maxWatched = 1_000

// NewGateway reads the servers' prompts and resources. Tools are direct if their names, such as
// github__get_issue, match one of the patterns. Allow decides on each access, like on a snippet's
// call; nil allows every access.
func (s *Servers) NewGateway(
	ctx context.Context, patterns []string, allow func(context.Context, tiers.Call) error,
) (*Gateway, error) {
	g := &Gateway{
		servers: s, allow: allow, prompts: map[string]*passed[*mcp.Prompt]{},
		resources: map[string]*passed[*mcp.Resource]{}, templates: map[string]*passed[*mcp.ResourceTemplate]{},
		watchers: map[string]int{},
	}
	if err := g.choose(patterns); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	for _, one := range s.all {
		if err := g.read(ctx, one); err != nil {
			g.skip(one, "the rest of its prompts and resources", err)
		}
		one.heard.onUpdate(g.tellUpdate)
		if len(g.direct) > 0 {
			one.wantMessages(ctx)
		}
	}
	return g, nil
}

// wantMessages requests log messages from a server of an earlier protocol generation. Newer servers
// have no log level, and others may refuse; then there are no log messages.
//
//nolint:staticcheck // earlier generations use it
func (s *server) wantMessages(ctx context.Context) {
	if s.capabilities().Logging != nil {
		_ = s.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"})
	}
}

// Skipped lists the objects that are not passed on to hosts, each with the reason.
func (g *Gateway) Skipped() []string { return g.skipped }

func (g *Gateway) skip(s *server, what string, err error) {
	if len(g.skipped) < 20 {
		g.skipped = append(g.skipped, fmt.Sprintf("hosts do not see %s of the MCP server %q: %v", what, s.given, err))
	}
}

// read reads the prompts, resources and tools of a server.
func (g *Gateway) read(ctx context.Context, s *server) error {
	capabilities := s.capabilities()
	if capabilities.Prompts != nil {
		for p, err := range s.session.Prompts(ctx, nil) {
			if err == nil && len(g.prompts) == maxListed {
				err = fmt.Errorf("there are more than %d prompts", maxListed)
			}
			if err != nil {
				return err
			}
			name := p.Name
			if g.prompts[name] != nil {
				name = s.name + "__" + name
			}
			shown := *p
			shown.Name = name
			g.prompts[name] = &passed[*mcp.Prompt]{s, p.Name, &shown}
		}
	}

	if capabilities.Resources == nil {
		return nil
	}
	for r, err := range s.session.Resources(ctx, nil) {
		if err == nil && len(g.resources) == maxListed {
			err = fmt.Errorf("there are more than %d resources", maxListed)
		}
		if err != nil {
			return err
		}
		if err := checkURI(r.URI); err != nil || g.resources[r.URI] != nil {
			g.skip(s, fmt.Sprintf("the resource %.100q", r.URI), orTaken(err))
			continue
		}
		g.resources[r.URI] = &passed[*mcp.Resource]{s, r.URI, r}
	}
	for t, err := range s.session.ResourceTemplates(ctx, nil) {
		if err != nil || len(g.templates) == maxListed {
			break // many servers have none, and return an error
		}
		_, err := uritemplate.New(t.URITemplate)
		if err == nil {
			err = checkURI(t.URITemplate)
		}
		if err != nil || g.templates[t.URITemplate] != nil {
			g.skip(s, fmt.Sprintf("the template %.100q", t.URITemplate), orTaken(err))
			continue
		}
		g.templates[t.URITemplate] = &passed[*mcp.ResourceTemplate]{s, t.URITemplate, t}
	}
	return nil
}

// checkURI refuses addresses without a scheme, and those of rlm itself.
func checkURI(uri string) error {
	scheme, _, ok := strings.Cut(uri, ":")
	if u, err := url.Parse(scheme + ":x"); !ok || err != nil || u.Scheme == "" {
		return errors.New("it is no address with a scheme")
	}
	if _, err := url.Parse(uri); err != nil && !strings.Contains(uri, "{") {
		return errors.New("it is no address")
	}
	if strings.EqualFold(scheme, "rlm") {
		return errors.New("addresses with rlm: are those of this program")
	}
	return nil
}

func orTaken(err error) error {
	if err == nil {
		return errors.New("another has the same address")
	}
	return err
}

// Configure adds the handlers of a server for hosts that pass requests on to the other servers.
func (g *Gateway) Configure(options *mcp.ServerOptions) {
	if len(g.direct) > 0 {
		options.Capabilities.Logging = &mcp.LoggingCapabilities{} //nolint:staticcheck // older hosts use it
	}
	if len(g.prompts)+len(g.templates) > 0 {
		options.CompletionHandler = g.complete
	}
	if len(g.resources)+len(g.templates) > 0 {
		options.SubscribeHandler = func(ctx context.Context, r *mcp.SubscribeRequest) error {
			return g.watch(ctx, r.Params.URI)
		}
		options.UnsubscribeHandler = func(ctx context.Context, r *mcp.UnsubscribeRequest) error {
			return g.unwatch(ctx, r.Params.URI)
		}
	}
}

// AddTo adds the prompts and resources to a server for hosts.
func (g *Gateway) AddTo(host *mcp.Server) {
	g.mu.Lock()
	g.host = host
	g.mu.Unlock()

	for _, name := range slices.Sorted(maps.Keys(g.prompts)) {
		p := g.prompts[name]
		host.AddPrompt(p.what, func(ctx context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			ctx, cancel, err := g.begin(ctx, p.server, "get_prompt", named("name", p.given))
			if err != nil {
				return nil, err
			}
			defer cancel()
			return p.server.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.given, Arguments: r.Params.Arguments})
		})
	}

	for _, uri := range slices.Sorted(maps.Keys(g.resources)) {
		host.AddResource(g.resources[uri].what, g.readFrom(g.resources[uri].server))
	}
	for _, template := range slices.Sorted(maps.Keys(g.templates)) {
		host.AddResourceTemplate(g.templates[template].what, g.readFrom(g.templates[template].server))
	}
}

// readFrom returns a reader for a server's resources.
func (g *Gateway) readFrom(s *server) mcp.ResourceHandler {
	return func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		ctx, cancel, err := g.begin(ctx, s, "read_resource", named("uri", r.Params.URI))
		if err != nil {
			return nil, err
		}
		defer cancel()
		return s.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.Params.URI})
	}
}

// begin checks whether an access is allowed, and limits its time.
func (g *Gateway) begin(
	ctx context.Context, s *server, function string, args map[string]tiers.Value,
) (context.Context, context.CancelFunc, error) {
	if g.allow != nil {
		call := tiers.Call{Function: s.name + "__" + function, Named: args}
		if err := g.allow(ctx, call); err != nil {
			return nil, nil, fmt.Errorf("%s.%s: %w", s.name, function, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	return ctx, cancel, nil
}

// named returns a string as a named argument.
func named(name, text string) map[string]tiers.Value {
	return map[string]tiers.Value{name: tiers.Value(quote(text))}
}

// complete suggests values for an argument of a prompt or a template.
func (g *Gateway) complete(ctx context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	params := *r.Params
	params.Meta = nil // the metadata belongs to the host's request
	ref := *params.Ref
	params.Ref = &ref

	var s *server
	if p := g.prompts[ref.Name]; ref.Type == "ref/prompt" && p != nil {
		s, ref.Name = p.server, p.given
	} else if t := g.templates[ref.URI]; ref.Type == "ref/resource" && t != nil {
		s = t.server
	}
	none := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	if s == nil || s.capabilities().Completions == nil {
		return none, nil
	}

	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return s.session.Complete(ctx, &params)
}

// ownerOf returns the server of a resource.
func (g *Gateway) ownerOf(uri string) *server {
	if r := g.resources[uri]; r != nil {
		return r.server
	}
	for _, template := range slices.Sorted(maps.Keys(g.templates)) {
		if t, err := uritemplate.New(template); err == nil && t.Regexp().MatchString(uri) {
			return g.templates[template].server
		}
	}
	return nil
}

// watch subscribes to a resource.
func (g *Gateway) watch(ctx context.Context, uri string) error {
	s := g.ownerOf(uri)
	if s == nil {
		return mcp.ResourceNotFoundError(uri)
	}
	g.mu.Lock()
	first := g.watchers[uri] == 0
	if first && len(g.watchers) == maxWatched {
		g.mu.Unlock()
		return fmt.Errorf("there are subscriptions to %d resources already", maxWatched)
	}
	g.watchers[uri]++
	g.mu.Unlock()

	if !first {
		return nil
	}
	if err := s.session.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil {
		g.leave(uri)
		return err
	}
	return nil
}

// unwatch ends a subscription.
func (g *Gateway) unwatch(ctx context.Context, uri string) error {
	s := g.ownerOf(uri)
	if s == nil || !g.leave(uri) {
		return nil
	}
	return s.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
}

// leave removes a watcher of a resource, and reports whether it was the last one.
func (g *Gateway) leave(uri string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watchers[uri] > 1 {
		g.watchers[uri]--
		return false
	}
	_, was := g.watchers[uri]
	delete(g.watchers, uri)
	return was
}

// tellUpdate notifies the hosts that a resource has changed.
func (g *Gateway) tellUpdate(ctx context.Context, uri string) {
	g.mu.Lock()
	host, isWatched := g.host, g.watchers[uri] > 0
	g.mu.Unlock()
	if host != nil && isWatched {
		_ = host.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
	}
}

// choose makes the tools that match the patterns direct.
func (g *Gateway) choose(patterns []string) error {
	taken := map[string]bool{}
	for _, pattern := range patterns {
		some, names := false, []string(nil)
		for _, t := range g.servers.list() {
			names = append(names, t.function())
			fits, err := path.Match(pattern, t.function())
			if err != nil {
				return fmt.Errorf("the pattern of names %q is malformed", pattern)
			}
			if !fits || t.origin == nil {
				continue
			}
			some = true
			if taken[t.function()] {
				continue
			}
			taken[t.function()] = true
			if err := g.addDirect(t); err != nil {
				g.skip(t.server, "the tool "+t.name, err)
			}
		}
		if !some {
			return fmt.Errorf("no tool of an MCP server has a name such as %q; there are: %.1000s",
				pattern, strings.Join(append(names, "no others"), ", "))
		}
	}
	return nil
}
