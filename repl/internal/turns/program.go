package turns

import (
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// step is a statement of code, or the first line of a block.
type step struct {
	begin, end int    // the range of the step in the code
	code       string // without strings and comments
	word       string // the keyword of a block, an import or a return, or ""
	indent     int
	isBlock    bool
	parent     int // the block that contains it, or -1
	before     int // the block that it continues, such as if before else, or -1
	scope      int // the function or class that contains it, or -1

	names, parameters []string // the names that it sets, and a function's parameters
	uses              []string
	isChange          bool // it changes the names that it sets, as in n += 1
	isItem            bool // it sets an item or an attribute, maybe of a variable outside of its function
	isPlain           bool // it sets a number or a string, which no other statement can change
	isForeign         bool // it imports a module that may read data
}

// key is a name in a scope.
type key struct {
	scope int
	name  string
}

// byFunctions is the scope of names that functions set outside of themselves, because their calls
// may be anywhere.
const byFunctions = -2

// program is code, split into steps.
type program struct {
	source   string
	steps    []step
	open     []int // the blocks that surround the next step
	sets     map[key][]int
	mentions map[string][]int
	visited  []bool
	tried    map[int]bool    // the blocks of try that were visited
	acted    map[string]bool // the names whose changes were visited
	called   map[string]bool // the functions whose calls were visited
	queued   map[key]int     // the first of the visited steps that set a name
	left     int             // the remaining statements and values to look for
	outside  bool            // the visited steps depend on more than the code
}

var (
	blockWord = lazyregexp.New(`^(?:async\s+)?(if|elif|else|for|while|with|try|except|finally|def|class|match|case)\b`)
	otherWord = lazyregexp.New(`^(import|from|return|yield|global|nonlocal|del)\b`)
	// answerCall matches a call that gives an answer.
	answerCall = lazyregexp.New(`\b(?:FINAL|FINAL_VAR|SUBMIT|final_answer)\(`)
	// loopNames matches the names of a comprehension, lambdaNames those of a lambda.
	loopNames   = lazyregexp.New(`\bfor\s+([^()\[\]{}]+?)\s+in\b`)
	lambdaNames = lazyregexp.New(`\blambda\b([^:]*):`)
	walrusName  = lazyregexp.New(`([\pL_][\pL\d_]*)\s*:=`)
	asNames     = lazyregexp.New(`\bas\s+\(?([\pL_][\pL\d_, ]*)`)
	// functionHead matches the beginning of a function, up to its parameters.
	functionHead = lazyregexp.New(`^(?:async\s+)?def\s+([\pL_][\pL\d_]*)\s*\(`)
	// globalIndex matches a variable that is accessed through globals() or locals().
	globalIndex = lazyregexp.New(`\b(?:globals|locals)\(\)\[\s*["'](\w+)["']\s*\]`)
	// runsText matches a call that runs a string as code.
	runsText = lazyregexp.New(`\b(?:eval|exec)\(`)
	// pureModule matches the modules that read no data.
	pureModule = lazyregexp.New(`^(?:abc|asyncio|base64|binascii|codecs|collections|contextlib|copy|dataclasses|` +
		`decimal|enum|fractions|functools|heapq|html|itertools|json|math|operator|re|statistics|string|textwrap|` +
		`types|typing|unicodedata|zlib)$`)
)

// parseProgram splits code into steps.
func parseProgram(source string) *program {
	source = globalIndex.ReplaceAllString(source, "$1")
	code := blankTexts(source)
	if runsText.MatchString(code) {
		code = source
	}

	p := &program{
		source: source, sets: map[key][]int{}, mentions: map[string][]int{}, tried: map[int]bool{},
		acted: map[string]bool{}, called: map[string]bool{}, queued: map[key]int{},
	}
	for begin := 0; begin < len(code); {
		end := endOfLine(code, begin)
		text := strings.TrimLeft(code[begin:end], " \t\r\n")
		start := end - len(text)
		p.addLine(code, start, end, start-begin)
		begin = end + 1
	}

	p.visited = make([]bool, len(p.steps))
	for i := range p.steps {
		p.steps[i].read(source)
		p.index(i)
	}
	return p
}

// endOfLine returns the end of the line of code at a position, including the lines that continue
// it.
func endOfLine(code string, at int) int {
	depth := 0
	for ; at < len(code); at++ {
		switch code[at] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '\\':
			at++
		case '\n':
			if depth <= 0 {
				return at
			}
		}
	}
	return len(code)
}

// findTop returns the first position of a byte outside of brackets, or -1.
func findTop(code string, char byte) int {
	depth := 0
	for at := range len(code) {
		switch c := code[at]; {
		case depth <= 0 && c == char:
			return at
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		}
	}
	return -1
}

// addLine adds the steps on a line. Only the first step may be a block, so the indentation bounds
// the depth of blocks.
func (p *program) addLine(code string, begin, end, indent int) {
	for isFirst := true; begin < end; isFirst = false {
		text := code[begin:end]
		s := step{begin: begin, end: end, indent: indent}
		if m := blockWord.FindStringSubmatch(text); m != nil && isFirst {
			if colon := findTop(text, ':'); colon > 0 {
				s.word, s.isBlock, s.end = m[1], true, begin+colon
			}
		}
		if !s.isBlock {
			if semicolon := findTop(text, ';'); semicolon >= 0 {
				s.end = begin + semicolon
			}
			if m := otherWord.FindStringSubmatch(text); m != nil {
				s.word = m[1]
			}
		}

		if s.code = strings.TrimSpace(code[begin:s.end]); s.code != "" {
			p.place(s)
		}
		if s.isBlock {
			indent++ // for the rest of the line
		}
		begin = s.end + 1
		for begin < end && (code[begin] == ' ' || code[begin] == '\t') {
			begin++
		}
	}
}

// place adds a step to the blocks that surround it.
func (p *program) place(s step) {
	s.parent, s.before, s.scope = -1, -1, -1
	for len(p.open) > 0 {
		last := p.open[len(p.open)-1]
		if p.steps[last].indent < s.indent {
			break
		}
		if p.steps[last].indent == s.indent {
			s.before = last
		}
		p.open = p.open[:len(p.open)-1]
	}
	if len(p.open) > 0 {
		s.parent = p.open[len(p.open)-1]
		s.scope = p.steps[s.parent].scope
		if p.steps[s.parent].isScope() {
			s.scope = s.parent
		}
	}

	if s.isBlock {
		p.open = append(p.open, len(p.steps))
	}
	p.steps = append(p.steps, s)
}

func (s *step) isScope() bool { return s.word == "def" || s.word == "class" }

// isAct reports whether a step may change a value that it names: it sets no name, prints nothing
// and gives no answer.
func (s *step) isAct() bool {
	return s.word == "" && len(s.names) == 0 && !strings.HasPrefix(s.code, "print(") && !answerCall.MatchString(s.code)
}

// read finds the names that a step sets and uses.
func (s *step) read(source string) {
	code := blankConstants(s.code)
	switch s.word {
	case "import", "from":
		s.readImport()
		return
	case "global", "nonlocal", "del":
		return
	case "def":
		if m := functionHead.FindStringSubmatchIndex(code); m != nil {
			s.names = []string{code[m[2]:m[3]]}
			s.readParameters(code[m[1]:])
			return
		}
	case "class":
		name, rest, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(code, "class")), "(")
		s.names, code = namesOf(name), rest
	case "for":
		if m := loopNames.FindStringSubmatchIndex(code); m != nil {
			s.names, code = namesOf(code[m[2]:m[3]]), code[m[1]:]
		}
	case "case":
		pattern, guard, _ := strings.Cut(code, " if ")
		s.names, code = namesOf(pattern), guard
	case "with", "except":
		for _, m := range asNames.FindAllStringSubmatch(code, -1) {
			s.names = append(s.names, namesOf(m[1])...)
		}
		code = asNames.ReplaceAllString(code, " ")
	case "":
		code = s.readTargets(code)
	}

	s.readUses(code)
	for _, m := range quotedName.FindAllStringSubmatch(source[s.begin:s.end], -1) {
		s.uses = append(s.uses, m[1])
	}
}

// readUses finds the names that an expression uses and those that it sets.
func (s *step) readUses(code string) {
	local := map[string]bool{}
	for _, names := range []*lazyregexp.Regexp{loopNames, lambdaNames} {
		for _, m := range names.FindAllStringSubmatch(code, -1) {
			for _, name := range namesOf(m[1]) {
				local[name] = true
			}
		}
	}
	for _, m := range walrusName.FindAllStringSubmatch(code, -1) {
		s.names = append(s.names, m[1])
		local[m[1]] = true
	}

	for _, name := range namesOf(keywordName.ReplaceAllString(code, "$1 $2")) {
		if !local[name] {
			s.uses = append(s.uses, name)
		}
	}
}

// readTargets finds the names that an assignment sets, and returns the rest of the statement.
func (s *step) readTargets(code string) (rest string) {
	for {
		at := findTop(code, '=')
		if at <= 0 || strings.HasPrefix(code[at:], "==") || strings.IndexByte("!<>:", code[at-1]) >= 0 {
			break
		}
		target := strings.TrimRight(code[:at], "+-*/%@&|^<> ")
		s.isChange = s.isChange || strings.IndexByte("+-*/%@&|^<>", code[at-1]) >= 0
		target, _, _ = strings.Cut(target, ":") // n: int
		for _, part := range splitNames(target) {
			names := namesOf(part)
			if len(names) == 0 {
				continue
			}
			s.names = append(s.names, names[0])
			s.uses = append(s.uses, names[1:]...)
			s.isItem = s.isItem || strings.ContainsAny(part, "[.")
		}
		code = code[at+1:]
	}

	if s.isChange = s.isChange || s.isItem; s.isChange {
		s.uses = append(s.uses, s.names...)
	}
	s.isPlain = len(s.names) > 0 && !strings.ContainsAny(code, "([{") && len(namesOf(code)) == 0
	return code
}

// splitNames returns the parts of a target that are set, without the outer brackets.
func splitNames(target string) []string {
	target = strings.TrimSpace(target)
	if strings.HasPrefix(target, "(") || strings.HasPrefix(target, "[") {
		target = strings.Trim(target, "()[]")
	}
	var parts []string
	for {
		at := findTop(target, ',')
		if at < 0 {
			return append(parts, target)
		}
		parts, target = append(parts, target[:at]), target[at+1:]
	}
}

// readParameters finds the parameters of a function, and the names in their defaults.
func (s *step) readParameters(code string) {
	end := findTop(code, ')')
	if end < 0 {
		end = len(code)
	}
	for _, part := range splitNames(code[:end]) {
		names := namesOf(part)
		if len(names) > 0 {
			s.parameters = append(s.parameters, names[0])
		}
		if _, value, ok := strings.Cut(part, "="); ok {
			s.uses = append(s.uses, namesOf(value)...)
		}
	}
}

// readImport finds the names that an import sets.
func (s *step) readImport() {
	head, list, isFrom := strings.Cut(strings.TrimPrefix(s.code, "from "), " import ")
	if !isFrom {
		list = strings.TrimPrefix(s.code, "import ")
	} else if !pureModule.MatchString(strings.TrimSpace(head)) {
		s.isForeign = true
	}

	for part := range strings.SplitSeq(list, ",") {
		module, alias, hasAlias := strings.Cut(strings.Trim(part, " ()\n\t"), " as ")
		top, _, _ := strings.Cut(strings.TrimSpace(module), ".")
		if !isFrom && !pureModule.MatchString(top) {
			s.isForeign = true
		}
		if hasAlias {
			top = strings.TrimSpace(alias)
		}
		s.names = append(s.names, top)
	}
}

// namesOf returns the names in code without strings, except the names of members.
func namesOf(code string) (names []string) {
	for _, at := range statedName.FindAllStringIndex(code, -1) {
		name := code[at[0]:at[1]]
		if isMember := at[0] > 0 && code[at[0]-1] == '.'; !isMember && !grammar[name] {
			names = append(names, name)
		}
	}
	return names
}

// grammar holds the keywords of Python.
var grammar = setOf(`and as assert async await break case class continue def del elif else except finally for
	from global if import in is lambda match nonlocal not or pass raise return try while with yield _`)

// setOf returns the set of the words in a string.
func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// index records the names that a step sets and mentions.
func (p *program) index(i int) {
	s := &p.steps[i]
	scope := s.scope
	for _, name := range s.names {
		isItem := scope >= 0 && s.isItem && !p.isSet(p.sets[key{scope, name}])
		isGlobal := scope >= 0 && p.isGlobal(scope, name)
		if isItem || isGlobal {
			p.sets[key{byFunctions, name}] = append(p.sets[key{byFunctions, name}], i)
		}
		if isGlobal {
			scope = -1
		}
		p.sets[key{scope, name}] = append(p.sets[key{scope, name}], i)
		scope = s.scope
	}
	for _, name := range s.parameters {
		p.sets[key{i, name}] = append(p.sets[key{i, name}], i)
	}
	if s.word == "global" || s.word == "nonlocal" {
		for _, name := range namesOf(s.code) {
			p.sets[key{s.scope, "global " + name}] = []int{i}
		}
	}
	for _, name := range s.uses {
		p.mentions[name] = append(p.mentions[name], i)
	}
}

// isGlobal reports whether a function declares that a name is not its own.
func (p *program) isGlobal(scope int, name string) bool {
	return len(p.sets[key{scope, "global " + name}]) > 0
}
