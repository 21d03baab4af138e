//go:build unix

package tablesql

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// endless contains expressions for which a single operation of SQLite takes between many seconds
// and days, without checking the context.
var endless = map[string]string{
	"like":    "printf('%.*c', 8000000, 'a') like '%" + strings.Repeat("a", 90) + "b%b%'",
	"glob":    "printf('%.*c', 8000000, 'a') glob '*" + strings.Repeat("a", 90) + "b*b*'",
	"decimal": "length(decimal_pow2(20000))",
	"collate": "(select length(max(x collate decimal)) from " +
		"(select printf('%.*c', 3000000, '1') || value x from generate_series(1, 1000)))",
	// In package bytes, the end of this needle has the same hash as aaaaaaaa.
	"instr":   "instr(printf('%.*c', 8000000, 'a'), printf('%.*c', 4000000, 'a') || 'gmecabry')",
	"replace": "replace(printf('%.*c', 8000000, 'a'), printf('%.*c', 4000000, 'a') || 'gmecabry', '')",
}

// TestEachOperationEndsWithItsQuery also checks that the engine of the next query is not affected.
func TestEachOperationEndsWithItsQuery(t *testing.T) {
	tables := usual(t)
	errOver := errors.New("the time is over")
	for name, value := range endless {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errOver)
		if rows, err := tables.Query(ctx, "select "+value, nil); !errors.Is(err, errOver) {
			t.Errorf("%s: %.100s, %v", name, rows, err)
		}
		cancel()

		text := asContext(t, makeDatabase(t, "create table t(a); create view v as select "+value))
		ctx, cancel = context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errOver)
		if err := WriteRows(ctx, text, "v", io.Discard); !errors.Is(err, errOver) {
			t.Errorf("%s in a view: %v", name, err)
		}
		cancel()

		if rows, err := tables.Query(t.Context(), "select count(*) n from orders", nil); string(rows) != `[{"n":3}]` {
			t.Errorf("after %s: %s, %v", name, rows, err)
		}
	}
}

// TestEnginesGiveTheirMemoryBack checks that engines release their memory, even after they ran out
// of it or lost it.
func TestEnginesGiveTheirMemoryBack(t *testing.T) {
	const memory = 256 << 20 // reserved by each engine
	limits := DefaultLimits()
	limits.Time = 50 * time.Millisecond
	tables := open(t, limits, map[string]string{"orders.csv": orders})

	before := reserved(t)
	for range 10 {
		for _, query := range []string{
			"select " + endless["decimal"],
			"select group_concat(printf('%.*c', 1000000, 'a')) from generate_series(1, 1000)",
			"select count(*) from orders",
		} {
			_, _ = tables.Query(t.Context(), query, nil)
		}
	}
	if after := reserved(t); after > before+3*memory {
		t.Errorf("%d MiB of addresses are reserved, before it were %d", after>>20, before>>20)
	}
}

// reserved returns how many bytes of address space the process has reserved, if the system reports
// it.
func reserved(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(data))[0])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
