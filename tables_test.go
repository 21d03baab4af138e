package rlm_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tables"
)

// TestSQLKnowsTheTablesOfASession checks that sql finds tables that were added to a session and to
// its fork.
func TestSQLKnowsTheTablesOfASession(t *testing.T) {
	session := open(t, rlm.SessionConfig{Contexts: []rlm.Context{rlm.Text("a.txt", "no table")}})
	prints(t, session, "print('sql' in globals())", "False\n")

	if err := session.AddContext(t.Context(), rlm.Text("b.csv", "n\n1\n2\n").As("b")); err != nil {
		t.Fatal(err)
	}
	prints(t, session, "print(sql('select sum(n) s from b'), sql('select * from context_1 limit 1'))",
		"[{'s': 3}] [{'n': 1}]\n")

	fork, err := session.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fork.Close() }) // an error no longer matters
	if err := fork.AddContext(t.Context(), rlm.Text("c.jsonl", "{\"n\": 5}\n{\"n\": 6}\n")); err != nil {
		t.Fatal(err)
	}
	prints(t, fork, "print(sql('select sum(b.n * c.n) s from b, context_2 c'))", "[{'s': 33}]\n")
	prints(t, session, "try:\n    sql('select * from context_2')\nexcept Exception as e:\n    print(e)",
		"sql: no such table: context_2; the tables are: b, context_1\n")
	prints(t, session, "sql = 'mine'", "")
	prints(t, session, "print(sql)", "mine\n")
}

// TestAFunctionOfTheCallerKeepsItsName checks that a caller's function named sql is not replaced.
func TestAFunctionOfTheCallerKeepsItsName(t *testing.T) {
	mine := rlm.Func("sql", "Mine.", func(context.Context, struct{}) (string, error) { return "mine", nil })
	session := open(t, rlm.SessionConfig{
		Contexts:  []rlm.Context{rlm.Text("a.csv", "n\n1\n")},
		Functions: []rlm.Function{mine},
	})
	prints(t, session, "print(sql())", "mine\n")
}

// TestALoopIsLentSQL checks that a loop receives the SQL of its engine; a distillation queries its
// corpus with it.
func TestALoopIsLentSQL(t *testing.T) {
	for _, sql := range []repl.SQL{nil, tables.SQL} {
		engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir(), SQL: sql})
		if err != nil {
			t.Fatal(err)
		}
		err = engine.RunLoop(t.Context(), repl.Task{}, repl.Loop{
			Kind: "test",
			Run: func(_ context.Context, lent repl.Lent) (ledger.Status, string, error) {
				if (lent.SQL == nil) != (sql == nil) || lent.Open == nil {
					t.Errorf("the engine lends %v", lent)
				}
				return ledger.StatusAnswered, "", nil
			},
		})
		if err := errors.Join(err, engine.Close()); err != nil {
			t.Error(err)
		}
	}
}
