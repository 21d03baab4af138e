package protocol_test

import (
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
)

// TestNamesOfHostFunctions checks that a name may have Python's special form if neither Python nor
// the runtime uses it.
func TestNamesOfHostFunctions(t *testing.T) {
	for _, name := range []string{"search", "_x", "_x_", "__x__", "__secret__", "__a_b__"} {
		if err := protocol.CheckName(name); err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "1x", "a-b", "class", "FINAL", "context", "context_1", "__", "____", "_____", "__x", "__x_",
		"__name__", "__builtins__", "__import__", "__build_class__", "__debug__", "__annotate__",
		"__rlm_text__", "__rlm__",
	} {
		if protocol.CheckName(name) == nil {
			t.Errorf("%q is allowed", name)
		}
	}
}
