package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/inputs"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// row is one promise of the protocol: the value that a snippet passes to FINAL.
type row struct{ name, source, want string }

// The rows of the protocol, by name, dialect, arity, call and await. Leaves repeat their prompt,
// verbatim if it is a list, and a typed leaf answers yes if its prompt contains "yes".
var rows = []row{
	{
		"context", "FINAL([context, context_0, context_1])",
		`["the first", "the first", "the second"]`,
	},
	{"context is restored", "context = 1\nFINAL(rlm_query('q', context_1))", "sub: q | the second"},
	{"history", "FINAL(history)", "[]"},
	{"llm_query", "FINAL(llm_query('a'))", "re: a"},
	{"llm_query awaited", "x = await llm_query('a')\nFINAL(x)", "re: a"},
	{
		"llm_query in asyncio.run",
		"import asyncio\nasync def main():\n    return await llm_query('a')\nFINAL(asyncio.run(main()))",
		"re: a",
	},
	{"llm_query with a model", "FINAL(llm_query('a', 'other'))", "re: a"},
	{"llm_query with model=", "FINAL(llm_query('a', model='other'))", "re: a"},
	{"llm_query with model=None", "FINAL(llm_query('a', None))", "re: a"},
	{
		"llm_query with a context", "FINAL(llm_query('a', 'no model'))",
		"re: a\n\nContext:\nno model",
	},
	{"llm_query with a context and a type", "FINAL(llm_query('yes?', 'some text', bool))", "true"},
	{
		"llm_query with an unknown model",
		"try:\n    llm_query('a', model='gpt-99')\n" +
			"except Exception as e:\n    FINAL('unknown model \"gpt-99\"' in str(e))",
		"true",
	},
	{"llm_query with prompt=", "FINAL(llm_query(prompt='a'))", "re: a"},
	{"llm_query with query=", "FINAL(llm_query(query='a'))", "re: a"},
	{
		"llm_query typed", "x = llm_query('yes?', schema=bool)\nFINAL([x, x is True])",
		"[true, true]",
	},
	{"llm_query typed by place", "x = llm_query('yes?', None, bool)\nFINAL(x is True)", "true"},
	{"llm_query typed by text", "x = llm_query('yes?', schema='bool')\nFINAL(x is True)", "true"},
	{
		"llm_query typed by text by place", "x = llm_query('yes?', None, 'bool')\nFINAL(x is True)",
		"true",
	},
	{
		"llm_query typed by JSON Schema",
		"x = await llm_query('yes?', schema={'type': 'boolean'})\nFINAL(x is True)", "true",
	},
	{
		"llm_query with output_type=", "x = llm_query('yes?', output_type=bool)\nFINAL(x is True)",
		"true",
	},
	{
		"llm_query typed awaited", "x = await llm_query('yes?', schema=bool)\nFINAL(x is True)",
		"true",
	},
	{
		"llm_query typed as Decimal, and then as float",
		"from decimal import Decimal\nn = llm_query('[12345678901234567890.123456789, 1.10]', schema=list[Decimal])\n" +
			"f = await llm_query('[1.10, 0.5]', schema=list[float])\n" +
			"u = llm_query('[1.10, 0.5]', schema={'type': 'array'})\n" +
			"FINAL([[str(x) for x in n], [type(x).__name__ for x in f + u]])",
		`[["12345678901234567890.123456789", "1.10"], ["float", "float", "float", "float"]]`,
	},
	{
		"llm_query without a prompt",
		"try:\n    llm_query()\nexcept Exception as e:\n    FINAL('prompt is missing' in str(e))",
		"true",
	},
	{
		"gather", "import asyncio\nFINAL(await asyncio.gather(*[llm_query(p) for p in 'abc']))",
		`["re: a", "re: b", "re: c"]`,
	},
	{
		"gather typed",
		"import asyncio\nr = await asyncio.gather(*[llm_query(p, schema=bool) for p in ['yes', " +
			"'no']])\nFINAL([r, [type(x).__name__ for x in r]])",
		`[[true, false], ["bool", "bool"]]`,
	},
	{
		"executor",
		"from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n" +
			"    out = list(pool.map(llm_query, ['a', 'b']))\nFINAL(out)",
		`["re: a", "re: b"]`,
	},
	{
		"executor typed",
		"from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n" +
			"    f = pool.submit(llm_query, 'yes', schema=bool)\n    out = f.result()\nFINAL(out is True)",
		"true",
	},
	{"llm_query_batched", "FINAL(llm_query_batched(['a', 'b']))", `["re: a", "re: b"]`},
	{"llm_query_batched awaited", "x = await llm_query_batched(['a'])\nFINAL(x)", `["re: a"]`},
	{"llm_query_batched with a model", "FINAL(llm_query_batched(['a'], 'other'))", `["re: a"]`},
	{
		"llm_query_batched of a generator", "FINAL(llm_query_batched(p for p in 'ab'))",
		`["re: a", "re: b"]`,
	},
	{
		"llm_query_batched with contexts", "FINAL(llm_query_batched(['a'], ['c']))",
		`["re: a\n\nContext:\nc"]`,
	},
	{
		"llm_query_batched of dicts", "FINAL(llm_query_batched([{'prompt': 'a', 'context': 'c'}]))",
		`["re: a\n\nContext:\nc"]`,
	},
	{
		"llm_query_batched typed",
		"r = llm_query_batched(['yes', 'no'], schema=bool)\nFINAL([x is True for x in r])",
		"[true, false]",
	},
	{
		"llm_query_batched, a failed slot",
		"r = llm_query_batched(['a', 'fail', 'b'])\n" +
			"kept = [r[0], r[1].startswith('Error'), 'model broke' in r[1].lower(), bool(r[1]), r[2]]\nFINAL(kept)",
		`["re: a", true, true, true, "re: b"]`,
	},
	{
		"llm_query_batched typed, a failed slot",
		"r = llm_query_batched(['yes', 'fail'], schema=bool)\ndef refuses(use):\n" +
			"    try:\n        use()\n    except TypeError as e:\n" +
			"        return 'has no value: Error: the model broke' in str(e)\n" +
			"uses = [lambda: bool(r[1]), lambda: not r[1], lambda: [x for x in r if x],\n" +
			"    lambda: list(r[1]), lambda: 2 * r[1]]\n" +
			"kept = [all(map(refuses, uses)), isinstance(r[1], SubCallError),\n" +
			"    r[1] == 'Error: the model broke', r[1].error]\n" +
			"FINAL(kept)",
		`[true, true, true, "the model broke"]`,
	},
	{"llm_query_batched of nothing", "FINAL(llm_query_batched([]))", "[]"},
	{
		"llm_query_batched of a str",
		"try:\n    llm_query_batched('abc')\nexcept Exception as e:\n    FINAL('must be a list' in str(e))",
		"true",
	},
	{"llm_batch", "FINAL(llm_batch(['a']))", `["re: a"]`},
	{"batch_llm_query", "FINAL(await batch_llm_query(['a']))", `["re: a"]`},
	{"llm_query_parallel", "FINAL(llm_query_parallel(['a']))", `["re: a"]`},
	{"llm_query_map", "FINAL(llm_query_map(['a']))", `["re: a"]`},
	{"rlm_query", "FINAL(rlm_query('q'))", "sub: q | "},
	{"rlm_query awaited", "FINAL(await rlm_query('q', 'c'))", "sub: q | c"},
	{"rlm_query with a context", "FINAL(rlm_query('q', 'c'))", "sub: q | c"},
	{"rlm_query with context=", "FINAL(rlm_query('q', context='c'))", "sub: q | c"},
	{"rlm_query with sub_context=", "FINAL(rlm_query('q', sub_context='c'))", "sub: q | c"},
	{"rlm_query with a model", "FINAL(rlm_query('q', 'other'))", "sub: q | "},
	{"rlm_query with a context and a model", "FINAL(rlm_query('q', 'c', 'other'))", "sub: q | c"},
	{"rlm_query with a list", "FINAL(rlm_query('q', [1, 2]))", "sub: q | [1, 2]"},
	{"rlm_query with a dict", "FINAL(rlm_query('q', {'a': 1}))", "sub: q | {'a': 1}"},
	{"rlm_query typed", "x = rlm_query('yes', 'c', bool)\nFINAL(x is True)", "true"},
	{
		"rlm_query typed by keyword",
		"x = await rlm_query('yes', sub_context='c', schema=bool)\nFINAL(x is True)", "true",
	},
	{
		"rlm_query in gather",
		"import asyncio\nFINAL(await asyncio.gather(rlm_query('p', 'a'), rlm_query('q', 'b')))",
		`["sub: p | a", "sub: q | b"]`,
	},
	{"rlm_query_batched", "FINAL(rlm_query_batched(['p', 'q']))", `["sub: p | ", "sub: q | "]`},
	{
		"rlm_query_batched with contexts", "FINAL(await rlm_query_batched(['p', 'q'], ['a', 'b']))",
		`["sub: p | a", "sub: q | b"]`,
	},
	{
		"rlm_query_batched with pairs", "FINAL(rlm_query_batched([('p', 'a'), ('q', 'b')]))",
		`["sub: p | a", "sub: q | b"]`,
	},
	{
		"run_parallel_sub_calls",
		"FINAL(await run_parallel_sub_calls([{'prompt': 'yes', 'context': 'a', 'schema': " +
			"{'type': 'boolean'}}, {'prompt': 'q', 'context': 'b'}]))",
		`[true, "sub: q | b"]`,
	},
	{
		"run_parallel_sub_calls called",
		"r = run_parallel_sub_calls([{'prompt': 'yes', 'sub_context': 'a', 'schema': bool}])\nFINAL(r[0] is True)",
		"true",
	},
	{
		"run_parallel_sub_calls, a failed slot",
		"r = run_parallel_sub_calls([{'prompt': 'fail'}, {'prompt': 'q'}])\n" +
			"kept = [isinstance(r[0], SubCallError), r[0].startswith('Error: '), r[1]]\nFINAL(kept)",
		`[true, true, "sub: q | "]`,
	},
	{
		"run_parallel_sub_calls with model",
		"FINAL(run_parallel_sub_calls([{'prompt': 'q', 'model': 'other'}]))", `["sub: q | "]`,
	},
	{"recursive_llm", "FINAL(recursive_llm('q', 'c'))", "sub: q | c"},
	{"recursive_reasoner_tool", "FINAL(recursive_reasoner_tool('q', 'c'))", "sub: q | c"},
	{
		"recursive_reasoner_tool by name",
		"FINAL(await recursive_reasoner_tool(prompt='q', context_data='c'))", "sub: q | c",
	},
	{
		"recursive_llm by name", "FINAL(await recursive_llm(sub_query='q', sub_context='c'))",
		"sub: q | c",
	},
	{"ask_llm", "FINAL(ask_llm('a'))", "re: a"},
	{"ask_llm with a context", "FINAL(ask_llm('a', 'c'))", "re: a\n\nContext:\nc"},
	{"ask_llm with an empty context", "FINAL(ask_llm('a', ''))", "re: a"},
	{
		"ask_llm deep_dive", "FINAL(await ask_llm('a', 'c', mode='deep_dive'))",
		"deep: a\n\nContext:\nc",
	},
	{"ask_llm by place", "FINAL(ask_llm('a', 'c', 'deep_dive'))", "deep: a\n\nContext:\nc"},
	{
		"ask_llm by name", "FINAL(ask_llm(question='a', context='c', mode='analysis'))",
		"re: a\n\nContext:\nc",
	},
	{"parallel_map", "FINAL(parallel_map(llm_query, ['a', 'b']))", `["re: a", "re: b"]`},
	{
		"parallel_map awaited", "FINAL(await parallel_map(llm_query, ['a', 'b']))",
		`["re: a", "re: b"]`,
	},
	{
		"parallel_map of a function",
		"FINAL(parallel_map(lambda x: llm_query(x).upper(), ['a', 'b']))", `["RE: A", "RE: B"]`,
	},
	{
		"parallel_map of a coroutine function",
		"async def f(x):\n    return (await llm_query(x)) + '!'\nFINAL(parallel_map(f, ['a', 'b']))",
		`["re: a!", "re: b!"]`,
	},
	{
		"parallel_map of a lambda that only calls",
		"FINAL(parallel_map(lambda x: llm_query('say ' + x, schema=str), ['a', 'b']))",
		`["a", "b"]`,
	},
	{
		"parallel_map of a lambda that raises",
		"try:\n    parallel_map(lambda x: llm_query(x + 1), ['a'])\nexcept TypeError:\n    FINAL('raised')",
		"raised",
	},
	{
		"parallel_map of a lambda over a name of one's own",
		"def ask(x): return 'mine ' + x\nllm_query = ask\nFINAL(parallel_map(lambda x: llm_query(x), ['a']))",
		`["mine a"]`,
	},
	{
		"parallel_map with exceptions",
		"r = parallel_map(llm_query, ['a', 'fail'], return_exceptions=True)\n" +
			"kept = [r[0], isinstance(r[1], Exception)]\nFINAL(kept)",
		`["re: a", true]`,
	},
	{
		"parallel_map raises",
		"try:\n    parallel_map(llm_query, ['fail'])\nexcept Exception as e:\n    kept = str(e)\n    FINAL(kept)",
		"the model broke",
	},
	{
		"sub_agent_call", "FINAL(sub_agent_call('q', 'critic', {'a': 1}))",
		"critic: q\n\nContext:\n{\"a\": 1}",
	},
	{
		"sub_agent_call by name",
		"FINAL(await sub_agent_call(prompt='q', agent_id='critic', data='d'))",
		"critic: q\n\nContext:\nd",
	},
	{
		"sub_agent_call of nobody",
		"try:\n    sub_agent_call('q', 'nobody', '')\nexcept Exception as e:\n" +
			"    FINAL('there are: critic, recursive_reasoner' in str(e))",
		"true",
	},
	{
		"sub_agent_call of the reasoner", "FINAL(sub_agent_call('q', 'recursive_reasoner', 'c'))",
		"sub: q | c",
	},
	{
		"sub_agent_call of the reasoner, awaited and typed",
		"x = await sub_agent_call('yes', 'recursive_reasoner', 'c', schema=bool)\nFINAL(x is True)",
		"true",
	},
	{
		"predict",
		"p = predict('passage -> answer: bool', passage='yes it is')\nFINAL([p.answer, p['answer'], p.answer is True])",
		"[true, true, true]",
	},
	{
		"predict awaited",
		"p = await predict('passage -> answer: bool', 'Decide.', passage='yes')\nFINAL(p)",
		`{"answer": true}`,
	},
	{
		"predict without an input",
		"try:\n    predict('passage -> answer: bool')\nexcept Exception as e:\n    FINAL('\"passage\"' in str(e))",
		"true",
	},
	{
		"predict, no such field",
		"p = predict('passage -> answer: bool', passage='yes')\ntry:\n    p.score\n" +
			"except AttributeError as e:\n    FINAL('no field' in str(e))",
		"true",
	},
	{"FINAL", "FINAL('x')", "x"},
	{"FINAL_VAR", "x = 5\nFINAL_VAR('x')", "5"},
	{"FINAL_VAR with a value", "FINAL_VAR('x', 6)", "6"},
	{"answer", "answer['content'] = 7\nanswer['ready'] = True", "7"},
	{"SUBMIT", "SUBMIT(a=1, b='x')", `{"a": 1, "b": "x"}`},
	{"SUBMIT by place", "SUBMIT('x')", "x"},
	{
		"SHOW_VARS",
		"import io, contextlib\nmine = [1, 2]\nout = io.StringIO()\n" +
			"with contextlib.redirect_stdout(out):\n    SHOW_VARS()\n" +
			"FINAL('mine: list (2)' in out.getvalue() and 'llm_query' not in out.getvalue())",
		"true",
	},
	{
		"modules",
		"FINAL([m.__name__ for m in (json, re, math, collections, itertools, statistics)] + " +
			"[c.__name__ for c in (datetime, timedelta, date, time, timezone)])",
		`["json", "re", "math", "collections", "itertools", "statistics", "datetime", ` +
			`"timedelta", "date", "time", "timezone"]`,
	},
	{
		"FINAL passes except Exception",
		"try:\n    FINAL(1)\nexcept Exception:\n    pass\nFINAL(2)", "1",
	},
	// schema=
	{"schema float", "FINAL(llm_query('say 0.5', schema=float))", "0.5"},
	{
		"schema int", "x = llm_query('say 3', schema=int)\nFINAL([x, type(x).__name__])",
		`[3, "int"]`,
	},
	{"schema str", "FINAL(llm_query('say hello', schema=str))", "hello"},
	{"schema list[int]", "FINAL(llm_query('say [1, 2]', schema=list[int]))", "[1, 2]"},
	{
		"schema dict[str, int]", "FINAL(llm_query('say {\"a\": 1}', schema=dict[str, int]))",
		`{"a": 1}`,
	},
	{
		"schema Optional",
		"from typing import Optional\nFINAL([llm_query('say null', schema=Optional[int])])", "[null]",
	},
	{
		"schema Union",
		"from typing import Union\nFINAL(llm_query('say 5', schema=Union[int, bool]))", "5",
	},
	{
		"schema Literal",
		"from typing import Literal\nFINAL(llm_query('say red', schema=Literal['red', 'blue']))",
		"red",
	},
	{
		"schema dataclass",
		"from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n" +
			"p = llm_query('say {\"x\": 4}', schema=P)\nFINAL([type(p).__name__, p.x])",
		`["P", 4]`,
	},
	{
		"schema list of dataclass",
		"from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n" +
			"p = await llm_query('say [{\"x\": 4}]', schema=list[P])\nFINAL([type(p[0]).__name__, p[0].x])",
		`["P", 4]`,
	},
	{
		"schema TypedDict",
		"from typing import TypedDict\nclass D(TypedDict):\n    x: int\nFINAL(llm_query('say {\"x\": 4}', schema=D))",
		`{"x": 4}`,
	},
	{
		"schema NamedTuple",
		"from typing import NamedTuple\nclass N(NamedTuple):\n    x: int\n" +
			"n = llm_query('say {\"x\": 4}', schema=N)\nFINAL([type(n).__name__, n.x])",
		`["N", 4]`,
	},
	{
		"schema Enum",
		"from enum import Enum\nclass C(Enum):\n    RED = 'red'\n" +
			"c = llm_query('say red', schema=C)\nFINAL([type(c).__name__, c.value])",
		`["C", "red"]`,
	},
	{
		"schema pydantic",
		"from pydantic import BaseModel\nclass F(BaseModel):\n    title: str\n    n: int = 1\n" +
			"f = llm_query('say {\"title\": \"t\"}', schema=F)\nFINAL([type(f).__name__, f.title, f.n])",
		`["F", "t", 1]`,
	},
	{"schema retried", "FINAL(llm_query('stubborn', schema=int))", "8"},
	{
		"schema never met",
		"try:\n    llm_query('say nothing', schema=int)\nexcept Exception as e:\n" +
			"    kept = 'does not meet the schema' in str(e)\n    FINAL(kept)",
		"true",
	},
	// combinators
	{
		"chunk", "FINAL([chunk('abcdefg', 3), chunk([1, 2, 3], 2), chunk('aaaa', 2, overlap=1)])",
		`[["abc", "def", "g"], [[1, 2], [3]], ["aa", "aa", "aa"]]`,
	},
	{
		"chunk at separators", "FINAL(chunk('ab\\ncd\\nefg\\n', 5, sep='\\n'))",
		`["ab\n", "cd\n", "efg\n"]`,
	},
	{
		"map_llm", "FINAL(map_llm('p', ['a', 'b']))",
		`["re: p\n\nContext:\na", "re: p\n\nContext:\nb"]`,
	},
	{"map_llm swapped and awaited", "FINAL(await map_llm(['a'], 'p'))", `["re: p\n\nContext:\na"]`},
	{
		"map_llm typed",
		"r = map_llm('?', ['yes', 'no'], schema=bool)\nFINAL([x is True for x in r])",
		"[true, false]",
	},
	{"filter_llm", "FINAL(filter_llm('keep?', ['yes a', 'no b', 'yes c']))", `["yes a", "yes c"]`},
	{
		"filter_llm, a judge that breaks",
		"try:\n    filter_llm('keep?', ['yes', 'fail'])\nexcept Exception as e:\n" +
			"    kept = 'item 1' in str(e)\n    FINAL(kept)",
		"true",
	},
	{"reduce_llm", "FINAL(reduce_llm('sum', [1, 2, 3, 4, 5], schema=int, fan_in=2))", "15"},
	{"tally", "FINAL(tally(['a', 'b', 'a']))", `{"a": 2, "b": 1}`},
	{
		"tally by a model",
		"FINAL(tally(['is red', 'is blue', 'is red'], labels=['red', 'blue', 'green'], prompt='Which colour?'))",
		`{"red": 2, "blue": 1, "green": 0}`,
	},
	{"a combinator's name is free", "chunk = 'mine'\nFINAL(chunk)", "mine"},
}

// leafOf answers leaf calls of the rows.
func leafOf(r llm.Request) (llm.Response, error) {
	prompt := last(r)
	first := r.Messages[0]
	said := first.Content
	for _, m := range r.Messages {
		if m.Role == llm.RoleUser {
			said = m.Content
			break
		}
	}
	answer := "re: " + prompt
	word, isWord := strings.CutPrefix(said, "say ")
	switch {
	case strings.Contains(said, "fail"):
		return llm.Response{}, fmt.Errorf("the model broke")
	case isWord:
		answer = word
	case said == "stubborn":
		answer = "it is not a figure"
		if strings.Contains(prompt, "does not meet") {
			answer = "8"
		}
	case strings.HasPrefix(said, "sum"):
		n, digits := 0, strings.FieldsFunc(said, func(r rune) bool { return r < '0' || r > '9' })
		for _, d := range digits {
			v := 0
			_, _ = fmt.Sscan(d, &v)
			n += v
		}
		answer = fmt.Sprint(n)
	case strings.HasPrefix(said, "Which colour?"):
		_, answer, _ = strings.Cut(said, "is ")
	case strings.Contains(said, "answer") && r.Schema != nil:
		answer = fmt.Sprintf(`{"answer": %t}`, strings.Contains(said, "yes"))
	case r.Schema != nil && strings.HasPrefix(said, "["):
		answer = said
	case r.Schema != nil:
		answer = fmt.Sprint(strings.Contains(said, "yes"))
	case first.Role == llm.RoleSystem && strings.Contains(first.Content, "investigate"):
		answer = "deep: " + prompt
	case first.Role == llm.RoleSystem && strings.Contains(first.Content, "critic"):
		answer = "critic: " + prompt
	}
	return llm.Response{Text: answer}, nil
}

// loopOf answers sub-loops of the rows with the sub-loop's question and context.
func loopOf(r llm.Request) (llm.Response, bool) {
	if r.Metadata.Depth == 0 {
		return llm.Response{}, false
	}
	question, _, _ := strings.Cut(strings.TrimPrefix(r.Messages[1].Content, "Question: "), "\n")
	source := fmt.Sprintf("FINAL('sub: %s | ' + str(globals().get('context', '')))", question)
	switch question {
	case "yes":
		source = "FINAL(True)"
	case "fail":
		source = ""
	}
	return llm.Response{Text: code(source)}, true
}

func TestEveryRowOfTheProtocol(t *testing.T) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			// A row with a failing call gives its answer twice, because the first is not accepted.
			script := []string{code(row.source), code("FINAL(kept)")}
			m := &models{script: script, sub: leafOf, byPurpose: loopOf}
			cfg := config(m, text("the first"), text("the second"))
			cfg.AllowedModels, cfg.MaxTurns = []string{"other"}, 2
			cfg.NoSynthesis = true
			cfg.Agents = critics
			answered(t, cfg, row.want)
		})
	}
}

var critics = map[string]repl.Agent{"critic": {Doc: "judges", System: "You are a critic."}}

// TestEveryRowOfTheProtocolInTierLocal tries the rows in one session, because processes start
// slowly. Sub-loops are simulated: TestEveryRowOfTheProtocol tests real ones.
func TestEveryRowOfTheProtocolInTierLocal(t *testing.T) {
	for _, tier := range shared.Tiers() {
		if tier.Info().Name == "local" {
			tiertest.Require(t, "local", tier.Probe(t.Context()))
		}
	}
	session := localSession(t)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if strings.HasPrefix(row.want, "sub: q | [") ||
				strings.HasPrefix(row.want, "sub: q | {") {
				t.Skip("it is about what a sub-loop sees")
			}
			source := "answer = {'content': '', 'ready': False}\n" + row.source
			ran, err := session.Run(t.Context(), loopsession.Block{Language: tiers.Python, Source: source})
			if err != nil {
				t.Fatal(err)
			}
			if ran.Final == nil || texts.Show(ran.Final.Value) != row.want {
				t.Errorf("it gave %+v, want %s (%+v)", ran.Final, row.want, ran.Exception)
			}
		})
	}
}

func localSession(t *testing.T) *loopsession.Session {
	t.Helper()
	ledger, err := calls.NewLedger(ledger.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	inputs := inputs.List{text("the first"), text("the second")}
	answers := &answers.Answers{
		Caller:      &calls.Caller{Models: &models{sub: leafOf}, Ledger: ledger, Gate: calls.NewGate(8)},
		Inputs:      inputs,
		Model:       "sub",
		Models:      []string{"sub", "other"},
		Agents:      critics,
		CallsAtOnce: 8,
		Loops:       calls.NewGate(4),
		Retries:     2,
		Loop: func(ctx context.Context, q answers.Query, _ *schema.Contract) (json.RawMessage, error) {
			question, err := inputs.Text(ctx, q.Prompt, 1_000)
			if err != nil || question == "fail" {
				return nil, errors.Join(err, errors.New("the sub-loop broke"))
			}
			part, err := inputs.Text(ctx, q.Context, 1_000)
			if err != nil || question == "yes" {
				return json.RawMessage("true"), err
			}
			return json.Marshal("sub: " + question + " | " + part)
		},
	}
	tools, err := (*repl.Tools)(nil).With(answers.Functions()...)
	if err != nil {
		t.Fatal(err)
	}
	session, err := loopsession.Open(t.Context(), loopsession.Config{
		Open: shared.Opener(router.Policy{Pin: "local"}), Inputs: inputs, Tools: tools,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return session
}

// TestEveryNameHasARow keeps the table complete.
func TestEveryNameHasARow(t *testing.T) {
	names := []string{}
	for _, f := range protocol.Functions() {
		names = append(names, f.Name)
	}
	names = append(
		names, "FINAL", "FINAL_VAR", "SUBMIT", "SHOW_VARS", "answer", "history", "context",
		"parallel_map", "chunk",
	)
	for _, name := range names {
		if !slices.ContainsFunc(
			rows, func(r row) bool { return r.name == name || strings.HasPrefix(r.name, name+" ") },
		) {
			t.Errorf("no row is about %s", name)
		}
	}
}
