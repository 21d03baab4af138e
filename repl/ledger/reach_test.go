package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

func TestReachNamesEveryModelThatCannotBeUsed(t *testing.T) {
	if err := ledger.CheckModels(t.Context(), nil, nil, "a/b"); err == nil {
		t.Error("there is no registry")
	}
	models := unknown{}
	if err := ledger.CheckModels(t.Context(), models, nil, "", ""); err == nil ||
		!strings.Contains(err.Error(), "no model: name one") {
		t.Errorf("got %v", err)
	}
	err := ledger.CheckModels(t.Context(), models, nil, "one", "", "two", "one")
	if err == nil || err.Error() != "cannot use model one: unknown\ncannot use model two: unknown" {
		t.Errorf("got %v", err)
	}
}

// unknown is a registry without any models.
type unknown struct{}

func (unknown) Resolve(string) (llm.Model, error) { return llm.Model{}, errors.New("unknown") }
