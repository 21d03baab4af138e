package wiring

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	mcptools "github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// rule decides on calls of tools.
type rule struct {
	text, verdict string
	tool          string         // a pattern for the name
	matching      *regexp.Regexp // for the arguments; nil for all
	above         float64        // minimum US dollars that the run has spent
	hint          string         // set by the tool's server; empty for any
}

const ruleForm = `want "VERDICT TOOL", then nothing, "matching REGEXP", "above USD" or "hinted HINT"; ` +
	`VERDICT is allow, deny or ask, TOOL is a name with * and ? as wildcards`

// parseRule parses a rule of --approve, such as `ask send_* matching "to":"[^"]*@example`.
func parseRule(text string) (r rule, err error) {
	fail := func(why string) (rule, error) { return r, fmt.Errorf("--approve %q: %s", text, why) }
	words := strings.Fields(text)
	if len(words) < 2 || !slices.Contains([]string{"allow", "deny", "ask"}, words[0]) {
		return fail(ruleForm)
	}

	if _, err := path.Match(words[1], ""); err != nil {
		return fail("its pattern of names is malformed")
	}
	r = rule{text: text, verdict: words[0], tool: words[1]}
	if len(words) == 2 {
		return r, nil
	}

	switch _, rest, _ := strings.Cut(text, words[2]); {
	case words[2] == "matching" && len(words) > 3:
		if r.matching, err = regexp.Compile(strings.TrimSpace(rest)); err != nil {
			return fail(err.Error())
		}
	case words[2] == "above" && len(words) == 4:
		if r.above, err = strconv.ParseFloat(words[3], 64); err != nil || !(r.above >= 0) {
			return fail(fmt.Sprintf("%q is no amount of US dollars", words[3]))
		}
	case words[2] == "hinted" && len(words) == 4:
		if r.hint = words[3]; !slices.Contains(mcptools.AllHints(), r.hint) {
			return fail(fmt.Sprintf("%q is no hint: give %s", r.hint, strings.Join(mcptools.AllHints(), ", ")))
		}
	default:
		return fail(ruleForm)
	}
	return r, nil
}

// fits reports whether the rule applies to a call of a tool with these hints.
func (r *rule) fits(call *tiers.Call, arguments string, spent ledger.Spending, hints []string) bool {
	named, _ := path.Match(r.tool, call.Function) // the pattern was checked
	return named && spent.USD >= r.above && (r.matching == nil || r.matching.MatchString(arguments)) &&
		(r.hint == "" || slices.Contains(hints, r.hint))
}

// readRules returns the function that applies the rules to tool calls, or nil without rules. A rule
// for a tool that does not exist is an error, because it was meant to protect something.
func (f *ToolFlags) readRules(
	e *cli.Env, names []string, servers *mcptools.Servers,
) (func(context.Context, tiers.Call, ledger.Spending) error, error) {
	var rules []rule
	for _, text := range f.approve {
		r, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		fits := func(name string) bool { ok, _ := path.Match(r.tool, name); return ok }
		if !slices.ContainsFunc(names, fits) {
			return nil, fmt.Errorf("--approve %q: no tool has such a name; there are: %s", text,
				strings.Join(append(names, "no others"), ", "))
		}
		rules = append(rules, r)
	}

	if len(rules) == 0 {
		return nil, nil //nolint:nilnil // documented: no rules
	}

	var asking sync.Mutex
	lines := bufio.NewReader(e.Stdin)
	return func(ctx context.Context, call tiers.Call, spent ledger.Spending) error {
		arguments, err := describeArguments(&call)
		if err != nil {
			return err
		}
		hints := servers.Hints(call.Function)
		i := slices.IndexFunc(rules, func(r rule) bool { return r.fits(&call, arguments, spent, hints) })
		switch {
		case i < 0 || rules[i].verdict == "allow":
			return nil
		case rules[i].verdict == "deny":
			return fmt.Errorf("the rule %q denies it", rules[i].text)
		}

		if f.Ask != nil {
			return f.Ask(ctx, call.Function, arguments, rules[i].text)
		}
		asking.Lock()
		defer asking.Unlock()
		return askPerson(e, lines, call.Function, arguments, rules[i].text)
	}, nil
}

// describeArguments returns the arguments of a call as JSON without spaces and unnecessary escapes,
// because a guest may have escaped characters to evade a rule.
func describeArguments(call *tiers.Call) (string, error) {
	described := struct {
		Args  []any          `json:"args,omitempty"`
		Named map[string]any `json:"named,omitempty"`
	}{Named: map[string]any{}}
	for _, value := range call.Args {
		plain, err := decodeArgument(value)
		if err != nil {
			return "", err
		}
		described.Args = append(described.Args, plain)
	}

	for name, value := range call.Named {
		plain, err := decodeArgument(value)
		if err != nil {
			return "", err
		}
		described.Named[name] = plain
	}

	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(described)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func decodeArgument(value tiers.Value) (plain any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber() // a float cannot represent all integers
	if err := decoder.Decode(&plain); err != nil {
		return nil, fmt.Errorf("an argument is not JSON: %w", err)
	}
	return plain, nil
}

// MaxAsked bounds the arguments in a question on a terminal, in bytes.
const MaxAsked = 4_000

// askPerson asks at the terminal whether to make a call. Without a terminal, the call waits for a
// later decision.
func askPerson(e *cli.Env, lines *bufio.Reader, function, arguments, rule string) error {
	later := fmt.Errorf("the rule %q asks first: %w", rule, repl.ErrLater)
	if !e.Terminal || !cli.IsTerminal(e.Stderr) || len(arguments) > MaxAsked {
		return later
	}

	if e.Pause != nil {
		defer e.Pause()()
	}
	_, _ = fmt.Fprintf(e.Stderr, "rlm: a snippet calls %s %s\nrlm: make the call? yes, no or later: ",
		cli.Escape(function), cli.Escape(arguments))
	line, err := lines.ReadString('\n')
	if err != nil {
		return later
	}

	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	case "n", "no":
		return errors.New("the user has denied it")
	}
	return later
}
