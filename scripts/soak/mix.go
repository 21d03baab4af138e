package main

import (
	"fmt"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tiers"
)

// kind is one kind of snippet, with the only correct verdict.
type kind struct {
	name   string
	weight int // its share of all snippets, in tenths of a percent
	job    func(c *client) tiers.Job
	// check returns what is wrong with a result, or "".
	check func(c *client, r *rlm.Result) string
}

// small is the kind whose latency is judged.
const small = "small"

// mix is the mixture of snippets: most are small, some are heavy, and some are hostile.
var mix = []kind{
	{small, 640, python("print(sum(range(100)))"), prints("4950\n")},
	{"state", 100, python("n = globals().get('n', 0) + 1\nprint(n)"), counts},
	{
		"compute", 60, python("t = 0\nfor i in range(600_000): t += i & 7\nprint(t)"),
		prints("2100000\n"),
	},
	{"host call", 80, python("print(lookup('a'))"), prints("value of a\n")},
	{
		"host calls", 20, python(
			"import asyncio\nprint(len(await asyncio.gather(*[lookup(str(i)) for i in range(20)])))"),
		prints("20\n"),
	},
	{"sleep", 20, python("import time\ntime.sleep(0.05)\nprint('awake')"), prints("awake\n")},
	{"exception", 30, python("1/0"), raises("ZeroDivisionError")},
	{"exit", 5, python("import sys\nsys.exit(3)"), ends(tiers.StatusExited, "")},
	{"memory", 10, python("b = bytearray(30 << 20)\nprint(len(b))\ndel b"), prints("31457280\n")},
	{"too much memory", 5, python("b = bytearray(1 << 30)"), limits(tiers.StatusLimit, tiers.LimitMemory)},
	{"too much output", 5, python("print('x' * 5_000_000)"), limits(tiers.StatusOK, tiers.LimitOutput)},
	{"endless", 1, python("while True: pass"), limits(tiers.StatusLimit, tiers.LimitWall)},
	{"crash", 4, python("import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()\nf()"), survives},
	{
		"go", 20, golang("import \"fmt\"\nx := 0\nfor i := 0; i < 1000; i++ {\n\tx += i\n}\nfmt.Println(x)"),
		prints("499500\n"),
	},
}

func python(source string) func(*client) tiers.Job {
	return func(*client) tiers.Job { return tiers.Job{Source: source} }
}

func golang(source string) func(*client) tiers.Job {
	return func(*client) tiers.Job { return tiers.Job{Source: source, Language: tiers.Go} }
}

func prints(want string) func(*client, *rlm.Result) string {
	return func(_ *client, r *rlm.Result) string {
		if r.Status != tiers.StatusOK || r.Stdout != want {
			return describe(r)
		}
		return ""
	}
}

// counts checks that the answer is the number of times that this snippet ran in the session.
func counts(c *client, r *rlm.Result) string {
	c.counted++
	return prints(fmt.Sprintln(c.counted))(c, r)
}

func ends(status tiers.Status, exception string) func(*client, *rlm.Result) string {
	return func(_ *client, r *rlm.Result) string {
		hasRaised := exception == "" || r.Exception != nil && r.Exception.Type == exception
		if r.Status != status || !hasRaised {
			return describe(r)
		}
		return ""
	}
}

func raises(exception string) func(*client, *rlm.Result) string {
	return ends(tiers.StatusRaised, exception)
}

func limits(status tiers.Status, limit tiers.Limit) func(*client, *rlm.Result) string {
	return func(_ *client, r *rlm.Result) string {
		if r.Status != status || r.Limit != limit {
			return describe(r)
		}
		return ""
	}
}

// survives checks that the snippet failed, for any reason. The session may then be in an earlier
// state.
func survives(c *client, r *rlm.Result) string {
	c.reopen = true
	if r.Status == tiers.StatusOK {
		return describe(r)
	}
	return ""
}

func describe(r *rlm.Result) string {
	said := strings.TrimSpace(r.Stdout)
	if len(said) > 60 {
		said = said[:60]
	}

	text := fmt.Sprintf("status %s, limit %q, tier %s, printed %q, wall %s, queued %s",
		r.Status, r.Limit, r.Tier, said, r.Usage.Wall, r.Usage.Queued)
	if r.Exception != nil {
		text += fmt.Sprintf(", %s: %s", r.Exception.Type, r.Exception.Message)
	}
	return text
}
