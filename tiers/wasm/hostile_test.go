package wasm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// excesses holds snippets that a limit of this tier stops. If that limit is lifted, they end well
// and print "done".
var excesses = []struct {
	name, source string
	limit        tiers.Limit
	low, high    tiers.Limits
}{
	{
		"memory in one piece", "x = bytearray(200 << 20)\nprint('done')", tiers.LimitMemory,
		tiers.Limits{Memory: 96 << 20},
		tiers.Limits{Memory: 384 << 20},
	},
	{
		"memory in small pieces", "x = [bytes(1 << 16) for _ in range(2000)]\nprint('done')",
		tiers.LimitMemory,
		tiers.Limits{Memory: 96 << 20},
		tiers.Limits{Memory: 384 << 20},
	},
	{
		"memory of a zip bomb",
		"import zlib\nx = zlib.decompress(zlib.compress(bytes(60 << 20)))\ny = x + x\n" +
			"print('done')",
		tiers.LimitMemory,
		tiers.Limits{Memory: 96 << 20},
		tiers.Limits{Memory: 512 << 20},
	},
	{
		"memory of a doubling text", "x = 'ab'\nwhile len(x) < 100_000_000: x += x\nprint('done')",
		tiers.LimitMemory,
		tiers.Limits{Memory: 96 << 20},
		tiers.Limits{Memory: 768 << 20},
	},
	{
		"fuel in a loop", "for _ in range(300_000): pass\nprint('done')", tiers.LimitFuel,
		tiers.Limits{Fuel: 100_000},
		tiers.Limits{},
	},
	{
		"fuel in C code", "x = sum(range(3_000_000))\nprint('done')", tiers.LimitFuel,
		tiers.Limits{Fuel: 100_000},
		tiers.Limits{},
	},
	{
		"fuel in a regular expression",
		"import re\nre.match(r'(a+)+$', 'a' * 20 + 'b')\nprint('done')", tiers.LimitFuel,
		tiers.Limits{Fuel: 300_000},
		tiers.Limits{},
	},
	{
		"fuel in copies",
		"b = bytes(64 << 20)\nfor _ in range(20): c = bytearray(b)\nprint('done')",
		tiers.LimitFuel,
		tiers.Limits{Fuel: 5_000_000},
		tiers.Limits{},
	},
	{
		"fuel in fills",
		"for _ in range(20): c = b'x' * (64 << 20)\nprint('done')", tiers.LimitFuel,
		tiers.Limits{Fuel: 5_000_000},
		tiers.Limits{},
	},
	{
		"time asleep", "import time\ntime.sleep(1)\nprint('done')", tiers.LimitWall,
		tiers.Limits{Wall: 200 * time.Millisecond},
		tiers.Limits{},
	},
	{
		"time at work",
		"import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass\n" +
			"print('done')",
		tiers.LimitWall,
		tiers.Limits{Wall: 200 * time.Millisecond, Active: time.Minute},
		tiers.Limits{},
	},
	{
		"output of one write", "print('x' * 100_000)\nprint('done')", tiers.LimitOutput,
		tiers.Limits{Output: 1000},
		tiers.Limits{Output: 1 << 20},
	},
	{
		"output of a loop", "for i in range(10_000): print(i)\nprint('done')", tiers.LimitOutput,
		tiers.Limits{Output: 1000},
		tiers.Limits{Output: 1 << 20},
	},
	{
		"host calls", "for _ in range(20): ask()\nprint('done')", tiers.LimitHostCalls,
		tiers.Limits{HostCalls: 5},
		tiers.Limits{},
	},
}

// TestExcess checks that its limit stops each snippet and that without the limit the snippet ends
// well, which shows that the limit is the cause. The attacks of package tiertest have their
// controls in that package.
func TestExcess(t *testing.T) {
	skip.Short(t, "it uses up each limit")
	tier := warmTier(t)
	host := tiers.HostFunc(
		func(context.Context, tiers.Call) (tiers.Value, error) { return tiers.Value("1"), nil },
	)
	for _, e := range excesses {
		t.Run(e.name, func(t *testing.T) {
			for _, lifted := range []bool{false, true} {
				limits := e.low
				if lifted {
					limits = e.high
				}
				s := openSandbox(
					t,
					tier,
					tiers.Config{
						Limits:    limits,
						Host:      host,
						Functions: []tiers.Function{{Name: "ask"}},
					},
				)
				r, err := s.Run(t.Context(), tiers.Job{Source: e.source})
				if err != nil {
					t.Fatal(err)
				}
				done := r.Status == tiers.StatusOK && strings.HasSuffix(r.Stdout, "done\n")
				if stopped := r.Limit == e.limit && !done; stopped == lifted || done != lifted {
					t.Errorf(
						"lifted %v: %s, limit %q, %d bytes dropped, %.100q %+v", lifted, r.Status,
						r.Limit, r.Dropped, r.Stdout, r.Exception,
					)
				}
				runOK(t, s, "print('alive')")
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
