package evaluators

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ichiban/prolog"
	"github.com/ichiban/prolog/engine"
)

// The names with a special meaning in programs.
var (
	atomNull   = engine.NewAtom("null")
	atomTrue   = engine.NewAtom("true")
	atomFalse  = engine.NewAtom("false")
	atomJSON   = engine.NewAtom("json")
	atomEqual  = engine.NewAtom("=")
	atomDot    = engine.NewAtom(".")
	atomEmpty  = engine.NewAtom("[]")
	atomReturn = engine.NewAtom("return")
)

// prologPrelude defines the predicates that each program has in addition to ISO Prolog.
const prologPrelude = `
:- set_prolog_flag(double_quotes, atom).
get(json(Members), Key, Value) :- member(Key = Value, Members).
`

// noFiles is the empty file system of a program.
var noFiles embed.FS

// prologRun is one running program.
type prologRun struct {
	vm      *engine.VM
	result  map[string]any
	counter counter
	goals   []prologGoal
}

// prologGoal is a goal of the program with the line on which it ends.
type prologGoal struct {
	term engine.Term
	line int
}

// lineReader tracks the line of the last character that a parser read.
type lineReader struct {
	*strings.Reader
	line  int
	ended bool // that character was a line end
}

// ReadRune implements [io.RuneReader].
func (r *lineReader) ReadRune() (c rune, size int, err error) {
	c, size, err = r.Reader.ReadRune()
	if err == nil && r.ended {
		r.line++
	}
	r.ended = c == '\n'
	return c, size, err
}

// atLine adds a line of the program to its error.
func atLine(line int, err error) error {
	var ended *ProgramError
	if errors.As(err, &ended) {
		return &ProgramError{ended.Kind, fmt.Sprintf("line %d: %s", line, ended.Message)}
	}
	return err
}

// runProlog runs a program: see [Jail.Prolog].
func runProlog(source string, variables map[string]any) (any, error) {
	p := prolog.New(strings.NewReader(""), io.Discard)
	p.FS = noFiles
	r := &prologRun{vm: &p.VM, result: map[string]any{}, counter: counter{left: maxValues}}
	p.Register2(atomReturn, r.returned)
	p.Register1(
		engine.NewAtom("dynamic"),
		func(_ *engine.VM, _ engine.Term, k engine.Cont,
			env *engine.Env,
		) *engine.Promise {
			return k(env)
		},
	)

	if err := p.Exec(prologPrelude); err != nil {
		return nil, err
	}
	if err := r.facts(variables); err != nil {
		return nil, err
	}
	if err := r.consult(source); err != nil {
		return nil, err
	}

	for _, goal := range r.goals {
		if err := r.solve(goal.term); err != nil {
			return nil, atLine(goal.line, err)
		}
	}
	return r.result, nil
}

// facts asserts the variables of the program.
func (r *prologRun) facts(variables map[string]any) error {
	output, state := engine.NewAtom("output"), engine.NewAtom("state")
	if err := r.assert(output.Apply(toProlog(variables["output"]))); err != nil {
		return err
	}
	members, _ := variables["state"].(map[string]any)
	for key, member := range members {
		if err := r.assert(state.Apply(engine.NewAtom(key), toProlog(member))); err != nil {
			return err
		}
	}

	return nil
}

// assert adds a clause. It translates grammar rules.
func (r *prologRun) assert(clause engine.Term) error {
	expanded := engine.NewVariable()
	_, err := engine.ExpandTerm(r.vm, clause, expanded, func(env *engine.Env) *engine.Promise {
		return engine.Assertz(r.vm, expanded, engine.Success, env)
	}, nil).Force(context.Background())
	return prologError(err)
}

// consult reads the program. It adds clauses immediately and defers goals.
func (r *prologRun) consult(source string) error {
	reader := &lineReader{Reader: strings.NewReader(source), line: 1}
	parser := engine.NewParser(r.vm, reader)
	for parser.More() {
		parser.Vars = nil
		term, err := parser.Term()
		if err != nil {
			return atLine(reader.line, &ProgramError{Syntax, err.Error()})
		}
		if goal := goalOf(term); goal != nil {
			r.goals = append(r.goals, prologGoal{goal, reader.line})
			continue
		}

		if err := r.assert(term); err != nil {
			return atLine(reader.line, err)
		}
	}

	return nil
}

// goalOf returns the goal in a term of the program, or nil if the term is a clause.
func goalOf(term engine.Term) engine.Term {
	c, ok := term.(engine.Compound)
	if !ok {
		return nil
	}
	switch name := c.Functor().String(); {
	case c.Arity() == 1 && (name == ":-" || name == "?-"):
		return c.Arg(0)
	case c.Arity() == 2 && (name == "," || name == ";" || name == "->" || name == atomReturn.String()):
		return term
	}

	return nil
}

// solve runs a goal for its first solution.
func (r *prologRun) solve(goal engine.Term) error {
	found, err := engine.Call(r.vm, goal, engine.Success, nil).Force(context.Background())
	if err != nil {
		return prologError(err)
	}
	if !found {
		return &ProgramError{Raised, "a goal has no solution"}
	}

	return nil
}

// prologError describes a thrown term.
func prologError(err error) error {
	var thrown engine.Exception
	if errors.As(err, &thrown) {
		return &ProgramError{Raised, thrown.Error()}
	}
	return err
}

// returned implements return/2.
func (r *prologRun) returned(
	_ *engine.VM, key, value engine.Term, k engine.Cont, env *engine.Env,
) *engine.Promise {
	name, ok := env.Resolve(key).(engine.Atom)
	if !ok {
		return engine.Error(errors.New("the first argument of return/2 must be an atom"))
	}
	made, err := r.value(value, env, 0)
	if err != nil {
		return engine.Error(err)
	}

	r.result[name.String()] = made
	return k(env)
}

// toProlog converts a value to a term.
func toProlog(v any) engine.Term {
	switch v := v.(type) {
	case bool:
		if v {
			return atomTrue
		}
		return atomFalse
	case string:
		return engine.NewAtom(v)
	case json.Number:
		switch n := numberOf(v).(type) {
		case int64:
			return engine.Integer(n)
		case float64:
			return engine.Float(n)
		}
		return engine.NewAtom(v.String())
	case []any:
		items := make([]engine.Term, len(v))
		for i, item := range v {
			items[i] = toProlog(item)
		}
		return engine.List(items...)
	case map[string]any:
		members := make([]engine.Term, 0, len(v))
		for key, member := range v {
			members = append(members, atomEqual.Apply(engine.NewAtom(key), toProlog(member)))
		}
		return atomJSON.Apply(engine.List(members...))
	}

	return atomNull
}

// value converts a term to JSON.
func (r *prologRun) value(term engine.Term, env *engine.Env, depth int) (any, error) {
	if err := r.counter.take(depth); err != nil {
		return nil, err
	}
	switch t := env.Resolve(term).(type) {
	case engine.Variable:
		return nil, nil //nolint:nilnil // null is a value
	case engine.Integer:
		return int64(t), nil
	case engine.Float:
		if math.IsNaN(float64(t)) || math.IsInf(float64(t), 0) {
			return nil, fmt.Errorf("JSON cannot represent the number %v", float64(t))
		}
		return float64(t), nil
	case engine.Atom:
		switch t {
		case atomTrue, atomFalse:
			return t == atomTrue, nil
		case atomNull:
			return nil, nil //nolint:nilnil // null is a value
		case atomEmpty:
			return []any{}, nil
		}
		return t.String(), nil
	case engine.Compound:
		switch {
		case t.Functor() == atomDot && t.Arity() == 2:
			return r.list(t, env, depth)
		case t.Functor() == atomJSON && t.Arity() == 1:
			return r.object(t.Arg(0), env, depth)
		}
		return nil, fmt.Errorf(
			"%s/%d is not a value: return atoms, numbers, lists and json([Key=Value, ...])",
			t.Functor(), t.Arity(),
		)
	}

	return nil, errors.New(
		"this is not a value: return atoms, numbers, lists and json([Key=Value, ...])",
	)
}

func (r *prologRun) list(term engine.Term, env *engine.Env, depth int) (any, error) {
	list := []any{}
	items := engine.ListIterator{List: term, Env: env}
	for items.Next() {
		item, err := r.value(items.Current(), env, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}

	return list, items.Err()
}

func (r *prologRun) object(term engine.Term, env *engine.Env, depth int) (any, error) {
	object := map[string]any{}
	members := engine.ListIterator{List: term, Env: env}
	for members.Next() {
		pair, ok := env.Resolve(members.Current()).(engine.Compound)
		if !ok || pair.Functor() != atomEqual || pair.Arity() != 2 {
			return nil, errors.New("json/1 must contain a list of Key=Value")
		}
		key, ok := env.Resolve(pair.Arg(0)).(engine.Atom)
		if !ok {
			return nil, errors.New("a key in json/1 must be an atom")
		}

		value, err := r.value(pair.Arg(1), env, depth+1)
		if err != nil {
			return nil, err
		}
		object[key.String()] = value
	}

	return object, members.Err()
}
