package tools

import (
	"context"
	_ "embed" // the Python source of the classes
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/data/bm25"
	"github.com/rlmhq/rlm/internal/data/remote"
	"github.com/rlmhq/rlm/internal/text/spelling"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// Servers are the MCP servers and APIs of one command.
type Servers struct {
	all []*server

	web        *remote.Client // for APIs; nil if there are none
	searchable func() *bm25.Library
}

// Options configure the servers.
type Options struct {
	Files   []string // files that list MCP servers
	APIs    []string // files or URLs of OpenAPI documents, optionally after NAME=
	Hosts   []string // hosts allowed for APIs, even private ones; empty allows all public hosts
	Inject  []string // headers for the hosts of APIs, as HOST=HEADER:VARIABLE
	Version string   // the program's version, which is sent to servers

	// Warn, if set, is called with warnings about servers, from any goroutine.
	Warn func(text string)

	secrets []secret
}

// Start starts or connects to the servers in files, all at the same time, and then reads the API
// documents. Close the servers after use.
func Start(ctx context.Context, o Options) (*Servers, error) {
	configs := map[string]config{}
	for _, file := range o.Files {
		more, err := readConfig(file, os.LookupEnv)
		if err != nil {
			return nil, err
		}
		for name, c := range more {
			if _, twice := configs[name]; twice {
				return nil, fmt.Errorf("%s: there is another MCP server %q", file, name)
			}
			configs[name] = c
		}
	}

	names := slices.Sorted(maps.Keys(configs))
	s := &Servers{all: make([]*server, len(names))}
	failed := make([]error, len(names))
	var starting sync.WaitGroup
	for i, name := range names {
		starting.Go(func() { s.all[i], failed[i] = connect(ctx, name, configs[name], &o) })
	}
	starting.Wait()

	if err := errors.Join(errors.Join(failed...), s.addAPIs(ctx, &o)); err != nil {
		return nil, errors.Join(err, s.Close())
	}

	taken := maps.Clone(busy)
	for _, one := range s.all {
		suffix := "_server"
		if name := makeName(one.given, suffix, map[string]bool{}); busy[name] {
			one.name = makeName(name+suffix, suffix, taken)
		} else {
			one.name = makeName(name, suffix, taken)
		}
	}

	s.searchable = sync.OnceValue(s.index)
	return s, nil
}

// addAPIs reads the documents of APIs.
func (s *Servers) addAPIs(ctx context.Context, o *Options) error {
	for _, text := range o.Inject {
		one, err := parseSecret(text)
		if err != nil {
			return err
		}

		o.secrets = append(o.secrets, one)
	}
	if len(o.APIs) == 0 {
		return nil
	}

	web, err := remote.NewFor("API", "--openapi-host", o.Hosts)
	if err != nil {
		return err
	}
	s.web = web
	ctx, cancel := context.WithTimeout(ctx, beginTime)
	defer cancel()
	for _, address := range o.APIs {
		one, err := describeAPI(ctx, address, o, web)
		if err != nil {
			return err
		}
		s.all = append(s.all, one)
	}
	return nil
}

// Close ends all servers.
func (s *Servers) Close() error {
	if s == nil {
		return nil
	}
	var ending sync.WaitGroup
	for _, one := range s.all {
		if one != nil {
			ending.Go(one.close)
		}
	}
	ending.Wait()

	if s.web != nil {
		s.web.Close()
	}
	return nil
}

// search and describe are the host functions that find and describe tools.
const (
	search   = "mcp__search"
	describe = "mcp__describe"
)

// Tools returns the host functions of all servers. The prompt lists them by the names of
// [Servers.Python]. The functions that find and describe tools are marked as timed, so that no
// budget counts their calls.
func (s *Servers) Tools() []repl.Tool {
	if s == nil {
		return nil
	}
	notes := s.prompt()
	all := []repl.Tool{
		{Name: search, Signature: search + "(query, limit=10)", Notes: notes, Timed: true, Call: s.search},
		{
			Name: describe, Signature: describe + "(server, name)", Notes: notes, Timed: true,
			Call: s.describeTool,
		},
	}
	for _, t := range s.list() {
		all = append(all, repl.Tool{
			Name: t.function(), Signature: t.function() + "(*args, **kwargs)", Notes: notes,
			Raw: func(ctx context.Context, call tiers.Call) (tiers.Value, error) {
				if err := take(ctx, t); err != nil {
					return nil, err
				}
				return t.run(ctx, call)
			},
		})
	}
	return all
}

func (s *Servers) list() []*tool {
	var all []*tool
	for _, one := range s.all {
		all = append(all, one.tools...)
	}
	return all
}

// mostInPrompt is the maximum number of tools in a prompt. If there are more tools, the prompt
// lists only the servers.
const mostInPrompt = 20

// prompt returns the part of the prompt about the servers.
func (s *Servers) prompt() string {
	tools := s.list()

	lines := []string{"Tools of servers: functions that you may await, also many at once with " +
		"`asyncio.gather`. Pass arguments by name. A tool that fails raises an exception."}
	if len(tools) <= mostInPrompt {
		for _, t := range tools {
			lines = append(lines, "- `"+t.signature()+"`: "+t.doc)
		}
		return strings.Join(lines, "\n")
	}

	var names []string
	for _, one := range s.all {
		names = append(names, fmt.Sprintf("%#q (%d)", one.name, len(one.tools)))
	}
	lines = append(lines, "The servers, with the numbers of their tools: "+strings.Join(names, ", ")+". "+
		"`tools.search(\"words\")` returns the tools that fit best, as dicts with name, signature and doc; "+
		"`help(server.tool)` shows one.")
	return strings.Join(lines, "\n")
}

// classes creates the functions of a server's class only when a snippet names them, because
// creating a thousand functions would take the guest a second.
//
//go:embed classes.py
var classes string

// Python returns the source that defines the class tools and one class for each server, whose
// functions call the host functions.
func (s *Servers) Python() string {
	var b strings.Builder
	b.WriteString(classes)
	for _, one := range s.all {
		fmt.Fprintf(&b, "\n\nclass %s(metaclass=_Server):\n    %s\n", one.name,
			quote(fmt.Sprintf("The server %s, with %d tools. %s", one.given, len(one.tools), one.title)))
	}
	return b.String()
}

// quote returns a string as a Python literal. Python understands JSON's escapes.
func quote(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(literal)
}

// index makes the tools searchable.
func (s *Servers) index() *bm25.Library {
	library := bm25.New(bm25.Bounds{})
	for i, t := range s.list() {
		words := strings.NewReplacer("_", " ", ".", " ").Replace(t.shown())
		library.Add(fmt.Sprint(i), strings.Join([]string{words, t.parameters(), t.doc}, " "))
	}
	return library
}

// errLimit is the error of a search with an invalid limit.
var errLimit = errors.New("the argument limit must be a number from 1 to 100")

// describeTool answers a class when a snippet names one of its tools. The answer is the tool's
// signature and description, or the names of all tools.
func (s *Servers) describeTool(_ context.Context, args map[string]tiers.Value) (tiers.Value, error) {
	server, err := shortTextOf(args, "server")
	if err != nil {
		return nil, err
	}
	name, err := shortTextOf(args, "name")
	if err != nil {
		return nil, err
	}

	names := []string{}
	for _, one := range s.all {
		if one.name != server {
			continue
		}
		for _, t := range one.tools {
			if t.name == name {
				return json.Marshal(t.signature() + "\n\n" + t.doc)
			}
			names = append(names, t.name)
		}
	}
	if name == "" {
		return json.Marshal(names)
	}

	meant := ""
	if nearest := spelling.Nearest(name, names); nearest != "" {
		meant = fmt.Sprintf("; did you mean %s.%s?", server, nearest)
	}
	return nil, fmt.Errorf("there is no tool %s.%s%s", server, name, meant)
}

// search answers the function tools.search.
func (s *Servers) search(_ context.Context, args map[string]tiers.Value) (tiers.Value, error) {
	query, err := shortTextOf(args, "query")
	if err != nil {
		return nil, err
	}

	limit := 10
	if args["limit"] != nil && json.Unmarshal(args["limit"], &limit) != nil {
		return nil, errLimit
	}
	return s.Find(query, limit)
}

// Find returns the tools that best match some words, as a list of objects with name, signature and
// doc. The limit is from 1 to 100.
func (s *Servers) Find(query string, limit int) (json.RawMessage, error) {
	if limit < 1 || limit > 100 {
		return nil, errLimit
	}

	type found struct {
		Name      string `json:"name"`
		Signature string `json:"signature"`
		Doc       string `json:"doc"`
	}

	all, best := s.list(), []found{}
	for _, hit := range s.searchable().Search(query, limit) {
		var i int
		if _, err := fmt.Sscan(hit.Path, &i); err == nil {
			best = append(best, found{all[i].shown(), all[i].signature(), all[i].doc})
		}
	}
	return json.Marshal(best)
}
