package repl_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl"
)

func TestReachNamesEveryModelThatCannotBeUsed(t *testing.T) {
	if err := repl.Reach(t.Context(), nil, "a/b"); err == nil {
		t.Error("there is no registry")
	}
	models := unknown{}
	if err := repl.Reach(t.Context(), models, "", ""); err == nil || !strings.Contains(err.Error(), "there is no model") {
		t.Errorf("got %v", err)
	}
	err := repl.Reach(t.Context(), models, "one", "", "two", "one")
	if err == nil || err.Error() != "cannot use model one: unknown\ncannot use model two: unknown" {
		t.Errorf("got %v", err)
	}
}
