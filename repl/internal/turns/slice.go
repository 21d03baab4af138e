package turns

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// The slice of an answer is the part of the code on which it depends: the steps that set its names,
// and the conditions around them. An answer is stated if its slice uses no names from outside of
// the code, in whatever form the code writes it.

var (
	// surely matches a condition that every context meets.
	surely = lazyregexp.New(`^if\s+(?:context|context is not None|len\(context\)\s*(?:>\s*0|>=\s*1))\s*$`)
	// pureName matches the names whose result is known if their arguments are.
	pureName = setOf(`FINAL FINAL_VAR SUBMIT final_answer print
		int str float bool complex bytes bytearray list dict tuple set frozenset object type slice super
		abs all any ascii bin chr divmod enumerate eval exec exit filter format hash hex isinstance issubclass
		iter len map max min next oct ord pow range repr reversed round sorted staticmethod classmethod property
		sum zip self cls __name__ True False None StopIteration KeyboardInterrupt`)
	// endsRound matches a statement that ends a loop or an iteration of it.
	endsRound = lazyregexp.New(`^(?:break|continue|return|raise)\b`)
	// reckons matches operations whose result the code need not contain.
	reckons       = lazyregexp.New(`\b(?:len|count|Counter|divmod|pow)\(|\bfor\b|\bwhile\b`)
	answerWords   = lazyregexp.New(`[\pL\d_.]+`)
	exceptionName = lazyregexp.New(`^[A-Z]\w*(?:Error|Exception)$|^Exception$`)
)

// isStated reports whether code uses only values that it contains itself. This includes code that
// replaces the context with its own text.
func isStated(source string) bool {
	if len(source) > maxStated {
		return false
	}
	p := parseProgram(source)
	for i := range p.steps {
		p.visit(i)
	}
	return !p.outside && len(p.sets[key{-1, "context"}]) == 0
}

// statesAnswer reports whether code uses other values, but answers with a value that it contains
// itself.
func statesAnswer(source string) bool {
	if isStated(source) || len(source) > maxStated {
		return false
	}

	p := parseProgram(source)
	starts := p.findAnswers()
	for _, i := range starts {
		p.visit(i)
	}
	return len(starts) > 0 && !p.outside
}

// isCalculated reports whether code counts or loops over values that it contains itself, and does
// not contain the words of its answer. Such an answer is not invented. A sum may be, because its
// parts are the model's.
func isCalculated(source string, answer json.RawMessage) bool {
	p := parseProgram(source)
	for _, i := range p.findAnswers() {
		p.visit(i)
	}
	for i, visited := range p.visited {
		if visited && reckons.MatchString(p.steps[i].code) {
			words := answerWords.FindAllString(string(answer), maxOwnWords)
			return slices.ContainsFunc(words, func(word string) bool { return !hasWord(source, word) })
		}
	}
	return false
}

// findAnswers returns the steps that give an answer: those that call FINAL, or else those that set
// the variable answer.
func (p *program) findAnswers() (starts []int) {
	for i := range p.steps {
		if answerCall.MatchString(p.steps[i].code) && p.steps[i].word != "def" {
			starts = append(starts, i)
		}
	}
	if len(starts) > 0 {
		return starts
	}

	starts = p.sets[key{-1, "answer"}]
	hasContent := false
	for _, i := range starts {
		s := &p.steps[i]
		hasContent = hasContent || !s.isChange || contents.MatchString(p.source[s.begin:s.end])
	}
	if !hasContent { // the content is set elsewhere
		return nil
	}
	return starts
}

// visit adds a step and its dependencies to the slice.
func (p *program) visit(first int) {
	queue := []int{first}
	for len(queue) > 0 && !p.outside {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if p.visited[i] {
			continue
		}
		p.visited[i] = true
		queue = append(queue, p.needs(i)...)
	}
}

// isSliceStated reports whether a step depends only on the code. It visits only the slice of that
// step.
func (p *program) isSliceStated(i int) bool {
	clear(p.visited)
	clear(p.tried)
	clear(p.acted)
	clear(p.called)
	clear(p.queued)
	p.outside = false
	p.visit(i)
	return !p.outside
}

// needs returns the steps on which a step depends.
func (p *program) needs(i int) (found []int) {
	s := &p.steps[i]
	p.outside = p.outside || s.isForeign
	if s.isBlock && surely.MatchString(s.code) {
		return nil
	}

	for _, name := range s.uses {
		found = append(found, p.find(name, i)...)
	}
	if !s.isPlain && s.word != "def" && s.word != "import" && s.word != "from" {
		for _, name := range s.names {
			found = append(found, p.findActs(name)...)
		}
	}
	found = append(found, p.findControl(i)...)
	if s.isScope() {
		found = append(found, p.findBody(i)...)
	}
	return found
}

// find returns the steps that set a name used by a step. A name that no step sets is from outside
// of the code.
func (p *program) find(name string, user int) []int {
	for scope := p.steps[user].scope; ; scope = p.steps[scope].scope {
		if scope < 0 || !p.isGlobal(scope, name) {
			if list := p.sets[key{max(scope, -1), name}]; len(list) > 0 {
				list = p.dropReplaced(list, user)
				p.outside = p.outside || !p.isSet(list) && name != "answer"
				found := p.queue(key{max(scope, -1), name}, list)
				if scope < 0 {
					found = slices.Concat(found, p.queue(key{byFunctions, name}, p.sets[key{byFunctions, name}]))
				}
				return found
			}
		}
		if scope < 0 {
			break
		}
	}
	p.outside = p.outside || !pureName[name] && !exceptionName.MatchString(name)
	return nil
}

// dropReplaced returns the steps that set a name, except those whose value another step replaces
// before the name is used.
func (p *program) dropReplaced(list []int, user int) []int {
	if p.steps[user].scope >= 0 {
		return list // a function runs later
	}
	for at, i := range slices.Backward(list) {
		s := &p.steps[i]
		if i < user && s.parent < 0 && !s.isChange {
			return list[at:]
		}
	}
	return list
}

// queue returns the steps that set a name, or nil if they are in the slice already.
func (p *program) queue(k key, list []int) []int {
	if first, ok := p.queued[k]; len(list) == 0 || ok && first <= list[0] {
		return nil
	}
	p.queued[k] = list[0]
	return list
}

// isSet reports whether any of the steps sets a name instead of changing it.
func (p *program) isSet(list []int) bool {
	for _, i := range list {
		if !p.steps[i].isChange {
			return true
		}
	}
	return false
}

// findActs returns the steps that may change the value of a name.
func (p *program) findActs(name string) (found []int) {
	if p.acted[name] {
		return nil
	}
	p.acted[name] = true
	for _, i := range p.mentions[name] {
		if p.steps[i].isAct() {
			found = append(found, i)
		}
	}
	return found
}

// findControl returns the blocks that decide whether a step runs.
func (p *program) findControl(i int) (found []int) {
	s := &p.steps[i]
	if s.parent >= 0 && !p.steps[s.parent].isScope() {
		found = append(found, s.parent)
	}
	if s.word == "while" || s.word == "for" {
		found = append(found, p.findEnds(i)...)
	}
	if s.before < 0 {
		return found
	}

	switch s.word {
	case "elif", "else", "case":
		found = append(found, s.before)
	case "except":
		found = append(found, s.before)
		if p.steps[s.before].word == "try" && !p.tried[s.before] {
			p.tried[s.before] = true
			for j := s.before + 1; j < i; j++ {
				if !strings.HasPrefix(p.steps[j].code, "print(") {
					found = append(found, j)
				}
			}
		}
	}
	return found
}

// findEnds returns the steps that end a loop or an iteration of it.
func (p *program) findEnds(loop int) (found []int) {
	for j := loop + 1; j < len(p.steps) && p.steps[j].indent > p.steps[loop].indent; j++ {
		if endsRound.MatchString(p.steps[j].code) {
			found = append(found, j)
		}
	}
	return found
}

// findBody returns the steps on which the result of a function or class depends, including its
// calls.
func (p *program) findBody(i int) (found []int) {
	s := &p.steps[i]
	for j := i + 1; j < len(p.steps) && p.steps[j].indent > s.indent; j++ {
		inner := &p.steps[j]
		isResult := inner.word == "return" || inner.word == "yield" || strings.Contains(inner.code, "yield ")
		if isResult || s.word == "class" && len(inner.names) > 0 {
			found = append(found, j)
		}
	}
	if len(s.parameters) > 0 || s.word == "class" {
		for _, name := range s.names {
			if !p.called[name] {
				p.called[name] = true
				found = append(found, p.mentions[name]...)
			}
		}
	}
	return found
}
