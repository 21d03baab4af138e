package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// smollmTurns are the replies of the root. It asks SmolLM2 for typed values one at a time, since a
// server that computes several replies together rounds differently.
var smollmTurns = []string{
	`messages = context.splitlines()
friendly = [llm_query("Is this message friendly?\n\n" + m, schema="bool") for m in messages]`,
	`topics = {"enum": ["bill", "delivery", "other"]}
about = [llm_query("What is this message about?\n\n" + m, schema=topics) for m in messages]`,
	`scale = {"type": "integer", "minimum": 1, "maximum": 5}
urgency = llm_query("How urgent is this message, from 1 to 5?\n\n" + messages[0], schema=scale)
FINAL({"friendly": friendly, "about": about, "urgency": urgency})`,
}

const smollmMessages = `The parcel with my medicine is late. Where is it?
You charged me twice for the same lamp.
`

// smollmCalls counts one call for each turn, two for each message and one for the urgency.
const smollmCalls = 3 + 2*2 + 1

func TestSmolLMAnswersTypedSubCallsAlsoIfItsServerStopsForAWhile(t *testing.T) {
	server := startLlamaCPP(t, skip.WithoutSmolLM(t))
	whole, _ := runWithSmolLM(t, t.TempDir(), server, func(int) {})
	checkSmolLM(t, whole.Answer)
	if whole.Spent.Calls != smollmCalls {
		t.Errorf("%d calls, want %d: an answer did not fit at once", whole.Spent.Calls, smollmCalls)
	}

	// The server stops during the second turn. The third turn begins while the server is down,
	// unless a call of the second turn waited for the server.
	dir, stopped := t.TempDir(), make(chan struct{})
	var restart sync.WaitGroup
	defer restart.Wait()
	stop := func() {
		defer restart.Done()
		server.kill()
		close(stopped)
		for begun := time.Now(); !hasWaited(dir) && time.Since(begun) < patience; {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(smollmPause(t))
		server.start()
	}
	broken, events := runWithSmolLM(t, dir, server, func(turn int) {
		switch turn {
		case 1:
			restart.Add(1)
			time.AfterFunc(300*time.Millisecond, stop)
		case 2:
			<-stopped
		}
	})
	restart.Wait()

	if !strings.Contains(events, `"kind":"waiting"`) {
		t.Errorf("no call has waited for the server:\n%s", events)
	}
	if !bytes.Equal(broken.Answer, whole.Answer) || !reflect.DeepEqual(broken.Spent, whole.Spent) {
		t.Errorf("with an outage: %s, %v\nwithout: %s, %v",
			broken.Answer, broken.Spent, whole.Answer, whole.Spent)
	}
}

// hasWaited reports whether a run's call waited for its server.
func hasWaited(dir string) bool {
	events, _ := os.ReadFile(smollmEvents(dir)) // the run creates the file
	return bytes.Contains(events, []byte(`"kind":"waiting"`))
}

func smollmEvents(dir string) string { return filepath.Join(dir, "trace", "events.jsonl") }

// smollmPause returns how long the server is down while a call waits for it.
func smollmPause(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("RLM_SMOLLM_PAUSE")
	if text == "" {
		return 3 * time.Second
	}
	pause, err := time.ParseDuration(text)
	if err != nil {
		t.Errorf("RLM_SMOLLM_PAUSE: %v", err)
	}
	return pause
}

// runWithSmolLM runs rlm in a folder, with SmolLM2 as the sub-model. It calls begin before each
// reply of the root, with the number of the turn, from 0. It returns the outcome and the run's
// events.
func runWithSmolLM(
	t *testing.T, dir string, server *llamaCPP, begin func(turn int),
) (rlm.Outcome, string) {
	t.Helper()
	root := llmtest.Start(func(r llm.Request) (llm.Response, error) {
		turn := 0
		for _, m := range r.Messages {
			if m.Role == llm.RoleAssistant {
				turn++
			}
		}
		begin(turn)
		return llm.Response{Text: "```repl\n" + smollmTurns[turn] + "\n```"}, nil
	})
	defer root.Close()

	messages := write(t, "messages.txt", []byte(smollmMessages))
	cmd := command(t, dir, "run", "Sort the messages.", "--context", messages, "--bypass", "0",
		"--model", "anthropic/any", "--sub-model", "openai/smollm2", "--json", "--trace", "trace",
		"--quiet")
	cmd.Env = append(cmd.Environ(), "OPENAI_BASE_URL="+server.address+"/v1",
		"ANTHROPIC_BASE_URL="+root.Env("ANTHROPIC_BASE_URL"),
		"ANTHROPIC_API_KEY="+root.Env("ANTHROPIC_API_KEY"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}

	var outcome rlm.Outcome
	if err := json.Unmarshal(out, &outcome); err != nil || outcome.Status != ledger.StatusAnswered {
		t.Fatalf("%v: %s", err, out)
	}
	events, err := os.ReadFile(smollmEvents(dir))
	if err != nil {
		t.Fatal(err)
	}
	return outcome, string(events)
}

// checkSmolLM checks that the answer consists of values that the schemas allow.
func checkSmolLM(t *testing.T, answer json.RawMessage) {
	t.Helper()
	var got struct {
		Friendly []bool
		About    []string
		Urgency  *int
	}
	decoder := json.NewDecoder(bytes.NewReader(answer))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	isOther := func(topic string) bool { return !slices.Contains([]string{"bill", "delivery", "other"}, topic) }
	if len(got.Friendly) != 2 || len(got.About) != 2 || slices.ContainsFunc(got.About, isOther) ||
		got.Urgency == nil || *got.Urgency < 1 || *got.Urgency > 5 {
		t.Errorf("the answer breaks the schemas of its parts: %s", answer)
	}
	t.Logf("%s", answer)
}
