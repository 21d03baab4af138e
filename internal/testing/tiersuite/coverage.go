package tiersuite

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/tiers"
)

// oneFails is a host whose map_llm answers yes to all items, but fails for the last item of a list.
type oneFails struct{}

func (oneFails) Call(_ context.Context, call tiers.Call) (tiers.Value, error) {
	if call.Function == protocol.Lack {
		return tiers.Value("null"), nil
	}
	var items []any
	if err := json.Unmarshal(call.Args[1], &items); err != nil {
		return nil, err
	}
	answers := make([]any, len(items))
	for i := range answers {
		answers[i] = "yes"
	}
	if len(answers) > 1 {
		answers[len(answers)-1] = map[string]any{"__rlm_error__": "Error: lost"}
	}
	return json.Marshal(answers)
}

// testCoverageMoves moves the values of map_llm(cover=True), which remain unreadable while one
// answer is missing.
func (s *suite) testCoverageMoves(t *testing.T) {
	cfg := tiers.Config{
		Host: oneFails{}, Functions: []tiers.Function{{Name: "map_llm"}, {Name: protocol.Lack}},
	}
	from, to := s.open(t, cfg), s.open(t, cfg)
	from.mustRun(t, `import enum
class Answer(enum.Enum):
    YES, NO = "yes", "no"
seen = map_llm("Is it?", ["a", "b", "c"], schema=Answer, cover=True)
same = [seen]
seen.partial()`)
	if report := moveTo(t, from, to); len(report.Left) > 0 {
		t.Errorf("left behind: %+v", report.Left)
	}
	to.mustRun(t, `try:
    print(seen.counts)
    raise SystemExit("one was missing")
except RuntimeError as error:
    assert "1 of 3 records have no value, the first at index 2: lost" in str(error), error
for join in (lambda: [] + seen, lambda: seen + []):
    try:
        print(join())
        raise SystemExit("one was missing")
    except RuntimeError:
        pass
assert [(m.index, m.record) for m in seen.missing] == [(2, "c")] and seen[0] is Answer.YES
assert seen.partial() == [Answer.YES, Answer.YES, None]
assert seen.retry() is seen is same[0] and [0] + seen == [0, *seen]
assert seen.counts == {Answer.YES: 3, Answer.NO: 0}, seen`)
}
