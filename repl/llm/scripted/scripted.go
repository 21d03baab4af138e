// Package scripted answers requests by rules, from a file or from Go, without any model.
// It serves tests, demos and dry runs.
//
// The first rule that matches a request answers it. The answer depends only on the request, not on
// the order of requests, so concurrent calls do not change a scripted run. docs/reference/models.md
// describes the format of the file.
package scripted

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/internal/yamlfile"
)

const (
	maxFile  = 16 << 20 // bytes
	maxRules = 10_000
	maxDelay = time.Minute
	maxReply = 16 << 20 // bytes, after expansion
)

// script implements [llm.Provider].
type script struct {
	model string // the model name in replies
	rules []Rule
}

// New returns a provider that answers by rules. The error is of the kind "bad file" and names
// the rule.
func New(rules ...Rule) (llm.Provider, error) {
	return newScript("", slices.Clone(rules))
}

// newScript checks and compiles rules.
func newScript(model string, rules []Rule) (*script, error) {
	if len(rules) > maxRules {
		return nil, badFile(
			fmt.Errorf("the script has %d rules, more than %d", len(rules), maxRules))
	}
	for i := range rules {
		if err := rules[i].compile(); err != nil {
			return nil, badFile(fmt.Errorf("rule %d: %w", i+1, err))
		}
	}
	return &script{model: model, rules: rules}, nil
}

// badFile returns the error of a script that cannot be used.
func badFile(err error) error {
	return &llm.Error{Kind: kind.ErrBadFile, Provider: "scripted", Err: err}
}

// Load returns a provider that answers by the rules of a file. The error is of the kind
// "bad file" and names the line or the rule.
func Load(path string) (llm.Provider, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, badFile(err)
	}
	defer f.Close()

	s, err := parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// fileRule is a rule as written in a file.
type fileRule struct {
	Rule  `yaml:",inline"`
	Error *fileError `yaml:"error"`
}

// fileError is an error as written in a file.
type fileError struct {
	Kind       string        `yaml:"kind"`
	Message    string        `yaml:"message"`
	RetryAfter time.Duration `yaml:"retry_after"`
}

// parse reads a script: strict YAML, which includes JSON.
func parse(r io.Reader) (*script, error) {
	var file struct {
		Version int        `yaml:"version"`
		Model   string     `yaml:"model"`
		Rules   []fileRule `yaml:"rules"`
	}
	if err := yamlfile.Decode(r, maxFile, &file); err != nil {
		return nil, badFile(err)
	}
	if file.Version != 1 {
		return nil, badFile(
			fmt.Errorf("unsupported version %d: this program reads version 1", file.Version))
	}

	var rules []Rule
	for i, in := range file.Rules {
		rule, err := in.convert()
		if err != nil {
			return nil, badFile(fmt.Errorf("rule %d: %w", i+1, err))
		}
		rules = append(rules, rule)
	}
	return newScript(file.Model, rules)
}

// convert returns the rule with its error, if it has one.
func (in fileRule) convert() (Rule, error) {
	rule := in.Rule
	if in.Error == nil {
		return rule, nil
	}

	known, ok := kind.Find(in.Error.Kind)
	if !ok {
		return rule, fmt.Errorf("unknown kind of error %q", in.Error.Kind)
	}
	rule.Error = &llm.Error{Kind: known, Message: in.Error.Message, RetryAfter: in.Error.RetryAfter}
	return rule, nil
}

// Complete implements [llm.Provider]. A request that no rule matches fails with the kind
// "no reply on file".
func (s *script) Complete(
	ctx context.Context, r llm.Request, stream func(string),
) (llm.Response, error) {
	answer := llm.Func(func(r llm.Request) (llm.Response, error) {
		rule, names := s.find(r)
		if rule == nil {
			return llm.Response{}, s.noReply(r)
		}
		if err := pause(ctx, rule.Delay); err != nil {
			return llm.Response{}, err
		}
		return s.answer(rule, r, names)
	})
	response, err := answer.Complete(ctx, r, nil)
	if err != nil {
		return llm.Response{}, err
	}

	if stream != nil {
		for line := range strings.Lines(response.Text) {
			stream(line)
		}
	}
	return response, nil
}

// find returns the first rule that matches a request, and the values of its names.
func (s *script) find(r llm.Request) (*Rule, map[string]string) {
	for i := range s.rules {
		if names, ok := s.rules[i].match(r); ok {
			return &s.rules[i], names
		}
	}
	return nil, nil
}

// noReply returns the error of a request that no rule matches.
func (s *script) noReply(r llm.Request) error {
	last, m := r.Messages[len(r.Messages)-1].Content, r.Metadata
	advice := ""
	if m.Purpose == "bypass" {
		advice = "; a small input is asked for directly: add a rule for this purpose, or pass --bypass 0"
	}
	return &llm.Error{
		Kind:     kind.ErrNoReply,
		Provider: "scripted",
		Model:    r.Model,
		Message: fmt.Sprintf(
			"no rule fits purpose %q, depth %d, turn %d, last message %.200q%s",
			m.Purpose, m.Depth, m.Turn, last, advice),
	}
}

// answer returns the answer of a rule.
func (s *script) answer(rule *Rule, r llm.Request, names map[string]string) (llm.Response, error) {
	switch {
	case rule.Do != nil:
		return rule.Do(r)
	case rule.Error != nil:
		failure := *rule.Error
		failure.Provider, failure.Model = "scripted", r.Model
		return llm.Response{}, &failure
	}

	out := llm.Response{Model: s.model, Finish: rule.Finish}
	if rule.Usage != nil {
		out.Usage = *rule.Usage
	}
	if rule.Reply != nil {
		out.Text = *rule.Reply
		return out, nil
	}
	text, err := expand(*rule.Expand, names)
	if err != nil {
		return llm.Response{}, &llm.Error{
			Kind: kind.ErrTooLarge, Provider: "scripted", Model: r.Model, Err: err,
		}
	}
	out.Text = text
	return out, nil
}

// pause waits, and returns the cause of the context if the context ends first.
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
