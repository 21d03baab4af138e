package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// programs time themselves with the guest's own clock, and print the best of several rounds, in
// seconds. The same source runs natively.
var programs = []struct{ name, setup, body string }{
	{"fib(27)", "def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)", "fib(27)"},
	{
		"json 1 MB, dumps and loads",
		"import json\nrows = [{'id': i, 'name': f'user{i}', 'tags': ['a', 'b', 'c']," +
			" 'score': i * 1.5, 'ok': i % 2 == 0, 'none': None} for i in range(10000)]",
		"json.loads(json.dumps(rows))",
	},
	{
		"regex 10 MB",
		"import re\nline = 'lorem ipsum dolor sit amet 12345 user@example.com consectetur" +
			" 2024-01-02 adipiscing elit; '\ntext = (line * 120000)[:10_000_000]\n" +
			"pattern = re.compile(r'[\\w.]+@[\\w.]+')",
		"pattern.findall(text)",
	},
}

const timing = `
import time
best = 1e9
for _ in range(5):
    begun = time.perf_counter()
    %s
    best = min(best, time.perf_counter() - begun)
print(best)
`

func (b *bench) compute() error {
	for _, p := range programs {
		source := p.setup + fmt.Sprintf(timing, p.body)
		native, err := exec.CommandContext(b.ctx, b.python, "-I", "-S", "-c", source).Output()
		if err != nil {
			return fmt.Errorf("native %s: %w", p.name, err)
		}
		ours, err := b.guest(tiers.Config{}, source)
		if err != nil {
			return err
		}

		x, y, err := seconds(ours.Stdout, string(native))
		if err != nil {
			return err
		}

		b.add(p.name, inMS(x), "native "+inMS(y), x/y, 3.6)
	}
	return nil
}

func inMS(seconds float64) string { return fmt.Sprintf("%.1f ms", seconds*1000) }

func seconds(a, b string) (x, y float64, err error) {
	if x, err = strconv.ParseFloat(strings.TrimSpace(a), 64); err != nil {
		return 0, 0, err
	}
	y, err = strconv.ParseFloat(strings.TrimSpace(b), 64)
	return x, y, err
}

// guest runs a program in a fresh sandbox of tier wasm.
func (b *bench) guest(cfg tiers.Config, source string) (tiers.Result, error) {
	return b.runIn(b.tier, cfg, source)
}

func (b *bench) runIn(tier tiers.Tier, cfg tiers.Config, source string) (tiers.Result, error) {
	cfg.Limits.Wall = 10 * time.Minute
	s, err := tier.Open(b.ctx, cfg)
	if err != nil {
		return tiers.Result{}, err
	}
	defer s.Close()

	r, err := s.Run(b.ctx, tiers.Job{Source: source})
	if err == nil && r.Status != tiers.StatusOK {
		err = fmt.Errorf("%s: %+v", source, r.Exception)
	}
	return r, err
}

// searches count matches in the large text, in the guest over the lazy context, and with grep.
var searches = []struct{ name, guest, grep, flag string }{
	{"count of a literal over 1 GiB, warm", `context.count("| ERROR")`, "| ERROR", "-F"},
	{
		"regex over 1 GiB, warm: a date",
		`sum(1 for _ in context.finditer(r"2024-0[1-3]-\d{2}"))`,
		`2024-0[1-3]-[0-9]{2}`,
		"-E",
	},
	{
		"regex over 1 GiB, warm: an error code",
		`sum(1 for _ in context.finditer(r"E-[0-9]{2}77"))`,
		`E-[0-9]{2}77`,
		"-E",
	},
}

func (b *bench) scan() error {
	text, err := bigtext.Open(b.text)
	if err != nil {
		return err
	}
	defer text.Close()
	cfg := tiers.Config{Inputs: []tiers.Input{{Name: b.text, Text: text}}}
	for _, s := range searches {
		source := "n = " + s.guest + fmt.Sprintf(timing, "n = "+s.guest)
		ours, err := b.guest(cfg, source)
		if err != nil {
			return err
		}

		took, _, err := seconds(ours.Stdout, "0")
		if err != nil {
			return err
		}

		native, err := b.grep(s.flag, s.grep)
		if err != nil {
			return err
		}

		b.add(s.name, fmt.Sprintf("%.3f s", took),
			fmt.Sprintf("grep -c %s %.3f s", s.flag, native.Seconds()), took/native.Seconds(), 1.2)
	}
	return b.scanMemory(cfg)
}

// grep times `grep -c` on the warm file, best of five, in the user's locale for
// UTF-8 text.
func (b *bench) grep(flag, pattern string) (time.Duration, error) {
	var times []time.Duration
	for range 6 {
		cmd := exec.CommandContext(b.ctx, "grep", "-c", flag, "-e", pattern, b.text)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		begun := time.Now()

		// This does not use cmd.Run, because grep stops at the first match when it writes to
		// /dev/null.
		if _, err := cmd.Output(); err != nil {
			return 0, fmt.Errorf("grep %s: %w", pattern, err)
		}
		times = append(times, time.Since(begun))
	}
	return slices.Min(times[1:]), nil
}

const scanning = `
n = context.count("a") + len(context.findall(r"E-[0-9]{2}77"))
step = max(1, context.size // 1000)
n += sum(len(context[i:i + 10000]) for i in range(0, context.size, step))
n += sum(len(chunk) for chunk in context[:200_000_000].chunks(1 << 18))
`

func (b *bench) scanMemory(cfg tiers.Config) error {
	r, err := b.guest(cfg, scanning)
	if err != nil {
		return err
	}
	mib := float64(r.Usage.PeakMemory) / (1 << 20)
	b.addPlain("guest memory while scanning and slicing 1 GiB",
		fmt.Sprintf("%.1f MiB", mib), "<= 40 MiB", mib <= 40)
	return nil
}

// command times the whole process in a normal run, on its first run on a machine, and with wazero
// and its code cached.
func (b *bench) command() error {
	empty, err := os.MkdirTemp("", "rlm-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(empty) }() // a temporary folder

	const what = "`rlm exec -c 'print(1+1)'`, the whole process"
	for _, row := range []struct {
		what, cache, engine string
		most                time.Duration
	}{
		{what, "", "auto", 15 * time.Millisecond},
		{what + ", with an empty cache", empty, "auto", 40 * time.Millisecond},
		{what + ", engine wazero", "", "wazero", 120 * time.Millisecond},
	} {
		took, err := median(21, func() error { return b.printTwo(row.cache, row.engine) })
		if err != nil {
			return fmt.Errorf("%s: %w", b.rlm, err)
		}
		b.addPlain(row.what, inMS(took.Seconds()), fmt.Sprintf("<= %g ms", row.most.Seconds()*1e3), took <= row.most)
	}

	return filepath.WalkDir(empty, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			err = fmt.Errorf("the command leaves %s in its cache", path)
		}
		return err
	})
}

// printTwo runs the command. If cache is empty, it uses the user's cache.
func (b *bench) printTwo(cache, engine string) error {
	cmd := exec.CommandContext(b.ctx, b.rlm, "exec", "--engine", engine, "-c", small)
	if cache != "" {
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	}
	out, err := cmd.Output()
	if err == nil && string(out) != "2\n" {
		err = fmt.Errorf("it printed %q", out)
	}
	return err
}
