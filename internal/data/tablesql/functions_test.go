package tablesql

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// openBoth opens an engine, and unmodified SQLite.
func openBoth(t *testing.T) (own *engine, theirs *sqlite3.Conn) {
	t.Helper()
	own, err := openEngine(t.Context(), 64<<20, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.close)
	theirs, err = sqlite3.OpenContext(t.Context(), ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	return own, theirs
}

// TestReplacedFunctionsAreThoseOfSQLite compares the functions with those that they replace.
func TestReplacedFunctionsAreThoseOfSQLite(t *testing.T) {
	skip.UnderRace(t)
	own, theirs := openBoth(t)
	random := rand.New(rand.NewPCG(1, 2))
	makeText := func() string {
		const letters = "01aBfFgGxé -"
		var text strings.Builder
		for range random.IntN(7) {
			text.WriteString(string([]rune(letters)[random.IntN(len([]rune(letters)))]))
		}
		return text.String()
	}
	for range 5_000 {
		a, b := makeText(), makeText()
		for _, query := range []string{
			"select quote(unhex(?1, ?2))", "select quote(trim(?1, ?2))", "select quote(ltrim(?1, ?2))",
			"select quote(rtrim(?1, ?2))", "select instr(?1, ?2)", "select quote(replace(?1, ?2, 'xy'))",
		} {
			t.Run(query, func(t *testing.T) {
				if got, want := askOne(t, own.Conn, query, a, b), askOne(t, theirs, query, a, b); got != want {
					t.Fatalf("%s of %q and %q: %s, want %s", query, a, b, got, want)
				}
			})
		}
	}
	for _, query := range []string{
		"select unhex(NULL, '') is null", "select unhex('', NULL) is null", "select quote(unhex(12, 1))",
	} {
		t.Run(query, func(t *testing.T) {
			if got, want := askOne(t, own.Conn, query, "", ""), askOne(t, theirs, query, "", ""); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		})
	}
}

// askOne returns the only value of a query with two parameters.
func askOne(t *testing.T, db *sqlite3.Conn, query, a, b string) string {
	t.Helper()
	stmt, _, err := db.Prepare(query)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	for i, value := range []string{a, b} {
		if i < stmt.BindCount() {
			if err := stmt.BindText(i+1, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !stmt.Step() {
		t.Fatal(stmt.Err())
	}
	return stmt.ColumnText(0)
}

// slow contains function calls that take hours in SQLite, and that the end of a query's time does
// not interrupt.
var slow = map[string]string{
	"unhex": "length(unhex(printf('%.*c', 4000000, 'z'), printf('%.*c', 4000000, 'y') || 'z'))",
	"instr": "instr(printf('%.*c', 4000000, 'z'), printf('%.*c', 2000000, 'z') || 'y')",
	"trim":  "length(ltrim(printf('%.*c', 4000000, 'z'), printf('%.*c', 2000000, 'y') || 'é' || 'z'))",
}

// TestPatternsAreThoseOfSQLite compares REGEXP with SQLite's own, which it replaces.
func TestPatternsAreThoseOfSQLite(t *testing.T) {
	own, err := openEngine(t.Context(), 64<<20, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer own.close()
	theirs, err := sqlite3.OpenContext(t.Context(), ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()

	for _, pattern := range []string{
		"a", "^a", "b$", "a.*b", "a.b", "[^a-c]x?", `\d+`, `\bé`, `\u00e9`, `\\u00e9`, "(ab|c){2,3}", `\x61`, "A", "",
	} {
		for _, text := range []string{"", "ab", "a\nb", "abcab", "A 12", "é", "xé y", `\u00e9`, "zz"} {
			for _, query := range []string{"select ?2 regexp ?1", "select regexpi(?1, ?2)", "select ?2 not regexp ?1"} {
				t.Run(query, func(t *testing.T) {
					got, want := askOne(t, own.Conn, query, pattern, text), askOne(t, theirs, query, pattern, text)
					if got != want {
						t.Errorf("%s of %q and %q: %s, want %s", query, pattern, text, got, want)
					}
				})
			}
		}
	}
	for pattern, says := range map[string]string{
		"(a{0,99}){0,9}b": "is too large", strings.Repeat("a", 201): "is too long", "(": "missing closing )",
	} {
		t.Run(fmt.Sprintf("%.60s", pattern), func(t *testing.T) {
			_, err := usual(t).Query(t.Context(), "select note regexp '"+pattern+"' from orders", nil)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%.20s: %v", pattern, err)
			}
		})
	}
	const long = "select printf('%.*c', 8000000, 'a') regexp ?"
	if rows, err := usual(t).Query(t.Context(), long, []byte(`["^a{9}"]`)); err != nil {
		t.Errorf("a short pattern over a long text: %s, %v", rows, err)
	}
	_, err = usual(t).Query(t.Context(), long, []byte(`["a{0,99}b"]`))
	if err == nil || !strings.Contains(err.Error(), "too long for this pattern") {
		t.Errorf("a long pattern over a long text: %v", err)
	}
}

// TestFunctionsTakeTimeInProportionToTheirArguments checks the slow calls, also in the views of a
// database.
func TestFunctionsTakeTimeInProportionToTheirArguments(t *testing.T) {
	for name, call := range slow {
		t.Run(name, func(t *testing.T) {
			if _, err := usual(t).Query(t.Context(), "select "+call, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			text := asContext(t, makeDatabase(t, "create table t(a); create view v as select "+call))
			if err := WriteRows(t.Context(), text, "v", io.Discard); err != nil {
				t.Errorf("%s in a view: %v", name, err)
			}
		})
	}
	for _, name := range []string{"json_patch", "jsonb_patch", "decimal_mul"} {
		t.Run(name, func(t *testing.T) {
			_, err := usual(t).Query(t.Context(), "select "+name+"('{}', '{}')", nil)
			if err == nil || !strings.Contains(err.Error(), name+" is missing") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
