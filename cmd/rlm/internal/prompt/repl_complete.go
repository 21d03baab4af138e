package prompt

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Patterns for lines that end in an attribute, a module, or a name from a module.
var (
	attributeEnd = lazyregexp.New(`(?:^|[^\w.)\]"'])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.(\w*)$`)
	moduleEnd    = lazyregexp.New(`^\s*(?:import|from)\s+(?:[\w.]+\s*,\s*)*(\w*)$`)
	memberEnd    = lazyregexp.New(`^\s*from\s+([A-Za-z_]\w*(?:\.\w+)*)\s+import\s+(?:\w+\s*,\s*)*(\w*)$`)
)

// complete returns a line without its last word, and the possible completions of that word.
func (s *shell) complete(ctx context.Context, line string) (head string, words []string) {
	var candidates []string
	var word string
	switch attribute, module, member := attributeEnd.FindStringSubmatch(line),
		moduleEnd.FindStringSubmatch(line), memberEnd.FindStringSubmatch(line); {
	case member != nil:
		word = member[2]
		candidates = s.lookUp(ctx, fmt.Sprintf(attributes, "_i.import_module('"+member[1]+"')", ""))
	case module != nil:
		word = module[1]
		candidates = s.lookUp(ctx, modules)
	case attribute != nil:
		word = attribute[2]
		candidates = s.lookUp(ctx, fmt.Sprintf(attributes, attribute[1], "("))
	default:
		word = lastWord(line)
		if word == "" {
			return line, nil
		}
		candidates = s.names(word == line)
	}

	for _, c := range candidates {
		isHidden := strings.HasPrefix(c, "_") && !strings.HasPrefix(word, "_")
		if strings.HasPrefix(c, word) && !isHidden && cli.Escape(c) == c {
			words = append(words, c)
		}
	}
	return strings.TrimSuffix(line, word), words
}

// lastWord returns the name, or the command, at the end of a line.
func lastWord(line string) string {
	start := strings.LastIndexFunc(line, func(r rune) bool {
		return r != '_' && r != ':' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') &&
			(r < 'a' || r > 'z')
	}) + 1
	return line[start:]
}

// names returns the names that a line may use. If the word begins the line, it also returns the
// commands.
func (s *shell) names(beginsLine bool) []string {
	candidates := append([]string{"context", "SHOW_VARS()", "FINAL(", "FINAL_VAR("}, pythonWords...)
	for _, f := range protocol.Functions() {
		candidates = append(candidates, f.Name+"(")
	}
	for _, v := range s.session.Variables() {
		candidates = append(candidates, v.Name)
	}
	if beginsLine {
		candidates = append(candidates, shellCommands...)
	}
	return candidates
}

// pythonWords are the Python keywords and builtins that completion offers.
var pythonWords = []string{
	"import ", "from ", "for ", "while ", "def ", "class ", "return ", "lambda ", "print(",
	"len(", "range(", "enumerate(", "sorted(", "isinstance(", "True", "False", "None", "await ",
	"async ", "with ", "except ", "finally:", "continue", "break", "assert ", "yield ",
}

// lookUpTime bounds a lookup in the session, because the user waits for the result.
const lookUpTime = 2 * time.Second

// lookUp returns the lines that a snippet prints in a copy of the session. A failure only means
// that there are no completions.
func (s *shell) lookUp(ctx context.Context, source string) []string {
	ctx, cancel := context.WithTimeout(ctx, lookUpTime)
	defer cancel()
	fork, err := s.session.Fork(ctx)
	if err != nil {
		return nil
	}
	defer func() { _ = fork.Close() }() // the fork is discarded

	result, err := fork.Run(ctx, source)
	if err != nil || result.Exception != nil {
		return nil
	}
	return strings.Fields(result.Stdout)
}

// attributes is Python code that prints the names of an object's attributes, with a mark after
// callable ones. The lookup is static, so it does not execute properties.
const attributes = `
import builtins as _b, importlib as _i, inspect as _s
_o = %s
_b.print(*(n + %q * _b.callable(_s.getattr_static(_o, n, None)) for n in _b.dir(_o)[:2000]), sep="\n")
`

// modules is Python code that prints the names of the modules that can be imported.
const modules = `
import builtins as _b, pkgutil as _p, sys as _s
_b.print(*_b.sorted(_s.stdlib_module_names | {m.name for m in _p.iter_modules()}), sep="\n")
`
