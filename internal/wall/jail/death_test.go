package jail

import (
	"strings"
	"testing"
)

func TestDeathIsFoundInTheOutput(t *testing.T) {
	long := "panic: " + strings.Repeat("x", 2*maxLine)
	for _, c := range []struct {
		output        string
		want          Death
		message, last string
	}{
		{"", Death{}, "", ""},
		{"all is well\n", Death{}, "", "all is well"},
		{
			"first\npanic: out of ideas\n\ngoroutine 1 [running]:\n",
			Death{"panic", "panic: out of ideas"},
			"out of ideas", "goroutine 1 [running]:",
		},
		{
			"fatal error: runtime: out of memory\n",
			Death{OutOfMemory, "fatal error: runtime: out of memory"},
			"runtime: out of memory", "fatal error: runtime: out of memory",
		},
		{
			"panic: fork: cannot allocate memory\nend",
			Death{OutOfMemory, "panic: fork: cannot allocate memory"},
			"fork: cannot allocate memory", "end",
		},
		{
			"runtime: goroutine stack exceeds 1000-byte limit\nfatal error: stack overflow",
			Death{"StackOverflow", "runtime: goroutine stack exceeds 1000-byte limit"},
			"runtime: goroutine stack exceeds 1000-byte limit", "fatal error: stack overflow",
		},
		{
			"fatal error: all goroutines are asleep - deadlock!",
			Death{"FatalError", "fatal error: all goroutines are asleep - deadlock!"},
			"all goroutines are asleep - deadlock!",
			"fatal error: all goroutines are asleep - deadlock!",
		},
		{
			"panic: \xff\n", Death{"panic", "panic: \ufffd"}, "\ufffd", "panic: \ufffd",
		},
		{
			long, Death{"panic", long[:maxLine]}, long[len("panic: "):maxLine], long[:maxLine],
		},
	} {
		got := FindDeath([]byte(c.output))
		if got != c.want || got.Message() != c.message {
			t.Errorf("%q: %+v with the message %q", c.output, got, got.Message())
		}
		if last := LastLine([]byte(c.output)); last != c.last {
			t.Errorf("%q: the last line is %q", c.output, last)
		}
	}
}
