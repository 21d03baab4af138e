package run_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/tiers"
)

// TestTranscripts plays the files of testdata/transcripts: the model's replies, the messages it
// must receive, and how the run must end. Sections:
//
//	config       key: value lines, see settings
//	input        the context
//	value        a context that is JSON
//	reply        a reply of the root model, in order
//	sub          a reply of a sub-loop's model, in order
//	leaf         "part of a prompt => reply" lines; without one a leaf repeats its prompt
//	told N       lines that the message after reply N must hold; "! x" must not
//	outcome      status, answer (as text), reason, partial: parts they must hold
func TestTranscripts(t *testing.T) {
	playAll(t, "testdata/transcripts")
}

// playAll plays the files of a folder.
func playAll(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no transcripts: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, archive)
		})
	}
}

type transcript struct {
	told    map[int][]string
	outcome map[string]string
	leaves  [][2]string
	subs    []string
}

func play(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	m := &models{}
	cfg := config(m)
	s := transcript{told: map[int][]string{}}
	for _, f := range archive.Files {
		data := string(f.Data)
		name, number, _ := strings.Cut(f.Name, " ")
		switch name {
		case "config":
			for key, value := range pairs(t, data, ": ") {
				set(t, &cfg, m, key, value)
			}
		case "input":
			cfg.Inputs = append(cfg.Inputs, text(data))
		case "value":
			cfg.Inputs = append(cfg.Inputs, tiers.Input{Name: "value", Value: tiers.Value(strings.TrimSpace(data))})
		case "reply":
			m.script = append(m.script, strings.TrimSuffix(data, "\n"))
		case "sub":
			s.subs = append(s.subs, strings.TrimSuffix(data, "\n"))
		case "leaf":
			for line := range strings.Lines(data) {
				prompt, reply, _ := strings.Cut(strings.TrimSpace(line), " => ")
				s.leaves = append(
					s.leaves, [2]string{prompt, strings.ReplaceAll(reply, `\n`, "\n")},
				)
			}
		case "told":
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			s.told[n] = strings.Split(strings.TrimSpace(data), "\n")
		case "outcome":
			s.outcome = pairs(t, data, ": ")
		default:
			t.Fatalf("unknown section %q", f.Name)
		}
	}
	m.sub = s.leaf
	m.byPurpose = s.subReply
	outcome, err := run.Run(t.Context(), cfg)
	s.verify(t, m, outcome, err)
}

func pairs(t *testing.T, data, separator string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(data) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), separator)
		if !ok {
			t.Fatalf("no %q in %q", separator, line)
		}
		out[key] = value
	}
	return out
}

// set applies one setting.
func set(t *testing.T, cfg *run.Config, m *models, key, value string) {
	t.Helper()
	n, _ := strconv.Atoi(value) // 0 if value is not a number
	switch key {
	case "question":
		cfg.Question = value
	case "turns":
		cfg.MaxTurns = n
	case "allowed":
		cfg.AllowedModels = []string{value}
	case "depth":
		cfg.MaxDepth = n
	case "calls":
		cfg.Budget.Calls = int64(n)
	case "feedback":
		cfg.FeedbackChars = n
	case "window":
		m.facts.Window = int64(n)
	case "schema":
		cfg.Schema = json.RawMessage(value)
	case "signature":
		cfg.Signature = value
	case "field":
		name, value, _ := strings.Cut(value, "=")
		cfg.Fields = map[string]tiers.Value{name: tiers.Value(value)}
	case "bypass":
		cfg.Bypass = n
	case "nosynthesis":
		cfg.NoSynthesis = value == "true"
	case "errortexts":
		cfg.ErrorTexts = value == "true"
	case "wall":
		cfg.Limits.Wall = time.Duration(n) * time.Millisecond
	case "retries":
		cfg.Retries = n
	default:
		t.Fatalf("unknown setting %q", key)
	}
}

func (s *transcript) leaf(r llm.Request) (llm.Response, error) {
	for _, l := range s.leaves {
		if strings.Contains(last(r), l[0]) {
			if reason, failed := strings.CutPrefix(l[1], "! "); failed {
				return llm.Response{}, fmt.Errorf("%s", reason)
			}
			return llm.Response{Text: l[1]}, nil
		}
	}
	return llm.Response{Text: "re: " + last(r)}, nil
}

// subReply answers sub-loops; called with the models' lock held.
func (s *transcript) subReply(r llm.Request) (llm.Response, bool) {
	if r.Metadata.Depth == 0 || len(s.subs) == 0 {
		return llm.Response{}, false
	}
	text := s.subs[0]
	s.subs = s.subs[1:]
	return llm.Response{Text: text}, true
}

func (s *transcript) verify(t *testing.T, m *models, outcome run.Outcome, err error) {
	t.Helper()
	got := map[string]string{
		"status": string(outcome.Status), "answer": outcome.Text(), "reason": outcome.Reason,
		"partial": outcome.Partial, "turns": strconv.Itoa(outcome.Turns),
		"loops": strconv.Itoa(outcome.Loops), "compactions": strconv.Itoa(outcome.Compactions),
		"calls": strconv.FormatInt(outcome.Spent.Calls, 10), "error": fmt.Sprint(err),
	}
	for key, want := range s.outcome {
		exact := slices.Contains(
			[]string{"status", "answer", "turns", "loops", "calls", "compactions"}, key,
		)
		if exact && got[key] != want || !strings.Contains(got[key], want) {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if _, expected := s.outcome["error"]; err != nil && !expected {
		t.Errorf("the run failed: %v", err)
	}
	for n, lines := range s.told {
		if n >= len(m.requests) {
			t.Errorf("there was no reply %d to tell anything about", n+1)
			continue
		}
		said := last(m.requests[n])
		for _, line := range lines {
			unwanted, not := strings.CutPrefix(line, "! ")
			if not && strings.Contains(said, unwanted) {
				t.Errorf("after reply %d the model was told %q, which has %q", n, said, unwanted)
			} else if !not && !strings.Contains(said, line) {
				t.Errorf("after reply %d the model was told %q, which lacks %q", n, said, line)
			}
		}
	}
}
