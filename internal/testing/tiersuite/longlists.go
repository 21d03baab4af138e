package tiersuite

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// wantsLists are uses of lines that require a real list.
const wantsLists = `
import io, json, pickle, pprint
uses = [
    FINAL, FINAL_VAR, seen, lambda p: FINAL(a=p), lambda p: FINAL({"a": [p]}), lambda p: seen({"a": [p]}),
    lambda p: seen(p[5:-5]), str, repr, "{}".format, lambda p: "%s" % p, lambda p: f"{p}", print, pprint.pformat,
    json.dumps, lambda p: json.dumps({"a": [p]}), lambda p: json.dump(p, io.StringIO()), pickle.dumps,
    list, tuple, sorted, lambda p: [*p], lambda p: (*p, 1), lambda p: [].extend(p), lambda p: print(*p),
    lambda p: list(iter(p)), "\n".join, lambda p: p + ["z"], lambda p: ["z"] + p, lambda p: p + p, lambda p: p * 2,
    lambda p: 2 * p, lambda p: p < ["z"], lambda p: p.sort(), lambda p: p.append("z"), lambda p: p.pop(),
    lambda p: p.extend(["z"]), lambda p: p.insert(0, "z"), lambda p: p.remove("x"), lambda p: p.reverse(),
    lambda p: p.clear(), lambda p: p.__setitem__(0, "z"), lambda p: p.__delitem__(0), lambda p: p.copy(),
    lambda p: list(reversed(p)), lambda p: sorted(reversed(p)),
]
for k, use in enumerate(uses):
    for parts in lines, context.lines():
        try:
            use(parts)
            print("use", k, "passed")
        except MemoryError as error:
            if not ("lines are too many" in str(error) and "parts[a:b]" in str(error)):
                print("use", k, error)
print(len(uses))`

// answersAsList are uses for which a sequence is enough. Their results are the same as for a list.
const answersAsList = `
import collections, itertools, random
x, y = lines[:2]
print(len(lines), lines[-1], lines[1:3], sum(1 for line in lines), lines[-1::-600000], bool(lines))
print(lines.index(y), lines.index(x, 1), lines.index(y, -2), lines.count(x), y in lines, "z" in lines)
for where in ((), (5,), (5, 6), (-1,)):
    try: print(lines.index(x if where == (5, 6) or where == (-1,) else "z", *where))
    except ValueError as error: print(error)
print([lines[i] for i in range(3)], [lines[i] for i in range(1199999, 1199996, -1)], [lines[i * 3] for i in range(4)])
print(sum(lines[i] == x for i in range(20000)), sum(lines[i] == x for i in range(0, 20000, 2)))
print(collections.Counter(lines), set(lines) == {x, y}, max(lines), random.choice(lines) in (x, y))
walk = iter(lines)
print(next(walk), sum(1 for _ in itertools.islice(walk, 1199990)), list(walk))
print(list(zip(lines, range(2))), next(enumerate(lines, 5)), lines[:100000].index(y), type(lines[:9]))
print(lines[5:-5] == lines[7:-3], lines == [x], lines != (x,), lines is not None)
match lines:
    case [first, *_]: print(first)
try: lines["a"]
except TypeError as error: print(error)`

const answeredAsList = `1200000 y234567 ['y234567', 'x234567'] 1200000 ['y234567', 'y234567'] True
1 2 1199999 600000 True False
'z' is not in list
'z' is not in list
'x234567' is not in list
'x234567' is not in list
['x234567', 'y234567', 'x234567'] ['y234567', 'x234567', 'y234567'] ['x234567', 'y234567', 'x234567', 'y234567']
10000 10000
Counter({'x234567': 600000, 'y234567': 600000}) True y234567 True
x234567 1199990 ['y234567', 'x234567', 'y234567', 'x234567', 'y234567', 'x234567', 'y234567', 'x234567', 'y234567']
[('x234567', 0), ('y234567', 1)] (5, 'x234567') 1 <class 'list'>
True False True True
x234567
list indices must be integers or slices, not str
`

// fitsIntoList are uses of a long text's lines that fit into a list.
const fitsIntoList = `
import json
lines = context.splitlines()
print(type(lines), json.dumps(lines) == json.dumps(context.lines()), lines == list(context.lines()), len(lines))
lines.append("z")
print(lines[-1], [*context.lines()][-1] == "b" * 999, "\n".join(context.lines()) == context.rstrip("\n"))
parts = context.lines()
for change in (
    lambda: parts.sort(), lambda: parts.append("z"), lambda: parts.pop(), lambda: parts.__setitem__(0, "z"),
    lambda: context.chunks(1000).reverse(),
):
    try: change()
    except TypeError as error: print("list(parts)" in str(error), end=" ")
seen(lines[:2])
FINAL({"all": len(context.splitlines()), "some": context.split("\n")[:1]})`

// testLongLists checks that a list that would not fit into memory is a sequence. The sequence must
// leave the sandbox as the list, or cause an error that explains what to do.
func (s *suite) testLongLists(t *testing.T) {
	skip.Short(t, "it makes lists of a million lines")
	in, _ := makeFileInput(t, []byte(strings.Repeat("x234567\ny234567\n", 600_000)))
	fitting, _ := makeFileInput(t, []byte(strings.Repeat(strings.Repeat("b", 999)+"\n", 9000)))
	config := func(in tiers.Input) func() tiers.Config {
		return func() tiers.Config {
			cfg := newHost().config()
			cfg.Inputs = []tiers.Input{in}
			cfg.Limits.Memory, cfg.Limits.Wall = 128<<20, s.opt.Patience
			return cfg
		}
	}

	s.playScenarios(t, config(in), []scenario{
		{name: "it answers as the list", steps: []step{
			{source: "lines = context.splitlines()"}, {source: answersAsList, out: answeredAsList},
		}},
		{name: "where only a list will do, it says so", steps: []step{
			{source: "lines = context.splitlines()"}, {source: wantsLists, out: "46\n"},
		}},
		single("a short part is a list", step{
			source: "FINAL(context.splitlines()[:2])", final: `["x234567","y234567"]`,
		}),
	})
	s.playScenarios(t, config(fitting), []scenario{single("a list that fits is a list", step{
		source: fitsIntoList,
		out:    "<class 'list'> True True 9000\nz True True\nTrue True True True True ",
		final:  `{"all":9000,"some":["` + strings.Repeat("b", 999) + `"]}`,
	})})

	t.Run("a walk that ends with the memory", func(t *testing.T) {
		box := s.open(t, config(in)())
		for _, use := range []string{
			"x = list(zip(lines, lines))", "x = [{line: [line]} for line in lines]",
			"x = [{line: [line]} for line in reversed(lines)]",
		} {
			r := box.run(t, "lines = context.splitlines()\n"+use)
			const why = "1,200,000 lines are too many"
			if r.Limit != tiers.LimitMemory || !strings.Contains(r.Exception.Traceback, why) {
				t.Errorf("%s\n%s", use, describe(r))
			}
		}
		for _, other := range []string{
			"for line in lines: pass", "x = lines[:9]", "next(iter(context.lines(0, 100)))", "",
		} {
			r := box.run(t, "lines = context.splitlines()\n"+other+"\nx = bytes(1 << 30)")
			if r.Limit != tiers.LimitMemory || strings.Contains(r.Exception.Traceback, "too many") {
				t.Errorf("%s\n%s", other, describe(r))
			}
		}
	})

	t.Run("it moves as what it is", func(t *testing.T) {
		from, to := s.open(t, config(in)()), s.open(t, config(in)())
		from.mustRun(t, "lines, some, parts = context.splitlines(), context.lines()[10:-10], context.chunks(500)")
		if report := moveTo(t, from, to); len(report.Left) > 0 {
			t.Errorf("left behind: %+v", report.Left)
		}
		to.mustPrint(t, "print(len(lines), lines[5], len(some), some[0], len(parts), parts[7][4:9])",
			"1200000 y234567 1199980 x234567 19200 x2345\n")
	})
}
