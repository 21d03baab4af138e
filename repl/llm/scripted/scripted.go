// Package scripted is a provider that needs no model: its replies are a program
// of rules, from a file or from Go. Tests, demos and dry runs use it.
//
// The first rule that fits a request answers it, so what is answered depends on
// the request alone and not on the order in which requests come: a run over a
// script is the same however many calls are made at once. docs/models.md has
// the format of the file.
package scripted

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
)

// Rule is an answer and when to give it. It has exactly one of Reply, Expand,
// Error and Do.
type Rule struct {
	When   When          `yaml:"when"`
	Reply  *string       `yaml:"reply"`  // as it stands
	Expand *string       `yaml:"expand"` // with ${name} and ${json:name} replaced
	Error  *Failure      `yaml:"error"`
	Finish string        `yaml:"finish"` // "stop" if empty
	Usage  *llm.Usage    `yaml:"usage"`  // estimated if nil
	Delay  time.Duration `yaml:"delay"`  // before the answer
	Do     llm.Func      `yaml:"-"`      // in Go only

	last, system, any *regexp.Regexp
}

// When is what a request must be like for a rule to fit. What is left out fits all.
type When struct {
	Purpose string `yaml:"purpose"`
	Depth   *int   `yaml:"depth"`
	Turn    *int   `yaml:"turn"`
	Slot    *int   `yaml:"slot"`
	Said    *int   `yaml:"said"`   // how many replies of the model the conversation has
	Schema  *bool  `yaml:"schema"` // whether a schema is asked for
	Model   string `yaml:"model"`
	Last    string `yaml:"last"`   // a regular expression (RE2) in the last message
	System  string `yaml:"system"` // in one of the system messages
	Any     string `yaml:"any"`    // in one of the messages
}

// Failure is an error to answer with.
type Failure struct {
	Kind       llm.KindError `yaml:"kind"`
	Message    string        `yaml:"message"`
	RetryAfter time.Duration `yaml:"retry_after"`
}

// Script is a provider made of rules.
type Script struct {
	model string
	rules []Rule
}

var _ llm.Provider = (*Script)(nil)

// Bounds of a script.
const (
	maxFile  = 16 << 20 // bytes
	maxRules = 10_000
	maxDelay = time.Minute
	maxReply = 16 << 20 // bytes, once expanded
)

// New returns the script of some rules. The error is of kind [llm.ErrBadFile]
// and says which rule is wrong.
func New(rules ...Rule) (*Script, error) { return newScript("", rules) }

// newScript checks and prepares rules.
func newScript(model string, rules []Rule) (*Script, error) {
	if len(rules) > maxRules {
		return nil, badFile(fmt.Errorf("it has %d rules, more than %d", len(rules), maxRules))
	}
	s := &Script{model: model, rules: append([]Rule(nil), rules...)}
	for i := range s.rules {
		if err := s.rules[i].prepare(); err != nil {
			return nil, badFile(fmt.Errorf("rule %d: %w", i+1, err))
		}
	}
	return s, nil
}

// badFile is the error of a script that cannot be used.
func badFile(err error) error {
	return &llm.Error{Kind: llm.ErrBadFile, Provider: "scripted", Message: "script", Err: err}
}

// Parse reads a script: strict YAML, of which JSON is a part.
func Parse(r io.Reader) (*Script, error) {
	var file struct {
		Version int    `yaml:"version"`
		Model   string `yaml:"model"`
		Rules   []Rule `yaml:"rules"`
	}
	if err := llm.DecodeYAML(r, maxFile, &file); err != nil {
		return nil, badFile(err)
	}
	if file.Version != 1 {
		return nil, badFile(fmt.Errorf("it has version %d: this program reads version 1", file.Version))
	}
	return newScript(file.Model, file.Rules)
}

// Load reads a script from a file.
func Load(path string) (*Script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, badFile(err)
	}
	defer f.Close()
	s, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Complete implements [llm.Provider]. A request that no rule fits fails with
// [llm.ErrNoReply].
func (s *Script) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	if err := context.Cause(ctx); err != nil {
		return llm.Response{}, err
	}
	if err := r.Validate(); err != nil {
		return llm.Response{}, err
	}
	for i := range s.rules {
		if names, ok := s.rules[i].fits(r); ok {
			return s.answer(ctx, &s.rules[i], r, names, stream)
		}
	}
	last := r.Messages[len(r.Messages)-1].Content
	return llm.Response{}, &llm.Error{Kind: llm.ErrNoReply, Provider: "scripted", Model: r.Model, Message: fmt.Sprintf(
		"no rule fits purpose %q, depth %d, turn %d, last message %.200q", r.Metadata.Purpose, r.Metadata.Depth, r.Metadata.Turn, last)}
}

// answer gives the answer of a rule.
func (s *Script) answer(
	ctx context.Context, rule *Rule, r llm.Request, names map[string]string, stream func(string),
) (llm.Response, error) {
	if err := pause(ctx, rule.Delay); err != nil {
		return llm.Response{}, err
	}
	out := llm.Response{Model: s.model, Finish: rule.Finish}
	switch {
	case rule.Do != nil:
		return rule.Do.Complete(ctx, r, stream)
	case rule.Error != nil:
		return llm.Response{}, &llm.Error{
			Kind: rule.Error.Kind, Provider: "scripted", Model: r.Model, Message: rule.Error.Message, RetryAfter: rule.Error.RetryAfter,
		}
	case rule.Reply != nil:
		out.Text = *rule.Reply
	default:
		var err error
		if out.Text, err = expand(*rule.Expand, names); err != nil {
			return out, &llm.Error{Kind: llm.ErrTooLarge, Provider: "scripted", Model: r.Model, Err: err}
		}
	}
	if rule.Usage != nil {
		out.Usage = *rule.Usage
	}
	out = out.Filled(r)
	if stream != nil {
		for line := range strings.Lines(out.Text) {
			stream(line)
		}
	}
	return out, nil
}

// pause waits, or returns the cause of the context's end.
func pause(ctx context.Context, delay time.Duration) error {
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
