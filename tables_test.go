package rlm_test

import (
	"context"
	"testing"

	"github.com/rlmhq/rlm"
)

// TestSQLKnowsTheTablesOfASession adds tables to a session and to its fork.
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
	t.Cleanup(func() { _ = fork.Close() }) // the test is over
	if err := fork.AddContext(t.Context(), rlm.Text("c.jsonl", "{\"n\": 5}\n{\"n\": 6}\n")); err != nil {
		t.Fatal(err)
	}
	prints(t, fork, "print(sql('select sum(b.n * c.n) s from b, context_2 c'))", "[{'s': 33}]\n")
	prints(t, session, "try:\n    sql('select * from context_2')\nexcept Exception as e:\n    print(e)",
		"sql: no such table: context_2; the tables are: b, context_1\n")
	prints(t, session, "sql = 'mine'", "")
	prints(t, session, "print(sql)", "mine\n")
}

// TestAFunctionOfTheCallerKeepsItsName has a function named sql.
func TestAFunctionOfTheCallerKeepsItsName(t *testing.T) {
	mine := rlm.Func("sql", "Mine.", func(context.Context, struct{}) (string, error) { return "mine", nil })
	session := open(t, rlm.SessionConfig{
		Contexts:  []rlm.Context{rlm.Text("a.csv", "n\n1\n")},
		Functions: []rlm.Function{mine},
	})
	prints(t, session, "print(sql())", "mine\n")
}
