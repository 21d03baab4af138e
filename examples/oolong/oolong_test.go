package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/standard"
)

// oracle is a registry whose model "oracle" correctly labels each message by its text. The model
// does not count.
type oracle struct {
	*providers.Registry

	t *testing.T
	// isSloppy makes some replies omit messages, name messages twice, or invent a label.
	isSloppy bool
	forms    []*regexp.Regexp // patterns of each topic's texts
}

func (o *oracle) Resolve(name string) (llm.Model, error) {
	if name != "oracle" {
		return o.Registry.Resolve(name)
	}
	return llm.Model{Name: name, ID: name, Provider: llm.Func(o.reply)}, nil
}

var numbered = regexp.MustCompile(`(?m)^"(\d+)": (".*?"),?$`)

func (o *oracle) reply(r llm.Request) (llm.Response, error) {
	if r.Metadata.Purpose == "base" {
		return llm.Response{Text: "These are too many to count.\nAnswer: 3"}, nil
	}
	prompt := r.Messages[0].Content
	_, text, isSingle := strings.Cut(prompt, "\n\nContext:\n")
	if records := numbered.FindAllStringSubmatch(text, -1); records != nil {
		return llm.Response{Text: o.labelRecords(r, records)}, nil
	}
	if isSingle {
		return llm.Response{Text: o.label(text)}, nil
	}

	_, page, _ := strings.Cut(prompt, "\n\n")
	var lines []string
	for message := range strings.SplitSeq(page, "\n") {
		lines = append(lines, o.label(message))
	}
	switch o.mistake(r) {
	case leavesOut:
		lines = lines[len(lines)/2:]
	case namesTwice:
		lines = append(lines, lines[:len(lines)/2]...)
	case invents:
		lines[0] = "something"
	}
	return llm.Response{Text: strings.Join(lines, "\n")}, nil
}

// labelRecords answers for numbered messages.
func (o *oracle) labelRecords(r llm.Request, records [][]string) string {
	var members []string
	for _, match := range records {
		var message string
		if err := json.Unmarshal([]byte(match[2]), &message); err != nil {
			o.t.Errorf("%s: %v", match[0], err)
		}
		members = append(members, fmt.Sprintf("%q: %q", match[1], o.label(message)))
	}
	switch o.mistake(r) {
	case leavesOut:
		members = members[len(members)/2:]
	case namesTwice:
		members = append(members, members[:len(members)/2]...)
	case invents:
		members[0] = `"1": "something"`
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// These are the possible mistakes in a reply about several messages.
const (
	leavesOut = iota
	namesTwice
	invents
	mistakes
)

// mistake returns the mistake in a reply. Most replies have none; even a corrected reply may have
// one.
func (o *oracle) mistake(r llm.Request) int {
	hash := fnv.New32a()
	for _, m := range r.Messages {
		_, _ = hash.Write([]byte(m.Content))
	}
	if kind := int(hash.Sum32() % (2*mistakes + 1)); o.isSloppy {
		return kind
	}
	return mistakes
}

// label finds the topic of a message.
func (o *oracle) label(message string) string {
	var found []string
	for i, form := range o.forms {
		if form.MatchString(message) {
			found = append(found, topics[i].name)
		}
	}
	if len(found) != 1 {
		o.t.Errorf("%q has the topics %q", message, found)
		return "unknown"
	}
	return found[0]
}

// formOf returns a pattern that matches the texts of a topic.
func formOf(t topic) *regexp.Regexp {
	var texts []string
	for _, text := range t.texts {
		form := regexp.QuoteMeta(text)
		for name, list := range words {
			form = strings.ReplaceAll(form, regexp.QuoteMeta(name), "(?:"+strings.Join(list, "|")+")")
		}
		texts = append(texts, form)
	}
	return regexp.MustCompile("^(?:" + strings.Join(texts, "|") + ")$")
}

func evaluate(t *testing.T, isSloppy bool) string {
	t.Helper()
	registry, err := providers.New(providers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// All tests share the cache, because it takes long to compile the interpreter.
	engine, err := rlm.New(rlm.Options{
		CacheDir: filepath.Join(os.TempDir(), fmt.Sprintf("rlm-test-cache-%d", os.Getuid()), "rlm"),
		Tiers:    standard.Tiers(standard.Options{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()

	o := &oracle{Registry: registry, t: t, isSloppy: isSloppy}
	for _, topic := range topics {
		o.forms = append(o.forms, formOf(topic))
	}
	var progress bytes.Buffer
	e := Evaluation{
		Engine: engine, Models: o, Model: "oracle", Root: "scripted/root.yaml",
		Sizes: []int{20, 150}, Tasks: 6, Seed: 7, Progress: &progress,
	}
	table, err := e.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", &progress, table)
	return table
}

var row = regexp.MustCompile(`(?m)^\| (\d+) \| ([\w ]+) \| ([\d.]+) \| (\d+) \|`)

func TestCoverIsExactIfTheModelLabelsHonestly(t *testing.T) {
	for _, isSloppy := range []bool{false, true} {
		t.Run(fmt.Sprintf("sloppy %v", isSloppy), func(t *testing.T) {
			rows := row.FindAllStringSubmatch(evaluate(t, isSloppy), -1)
			if len(rows) != 6 {
				t.Fatalf("the table has the rows %q", rows)
			}
			for _, r := range rows {
				wantExact := r[2] == "RLM with cover" || r[2] == "RLM" && !isSloppy
				mayBeExact := wantExact || r[2] == "RLM" && r[1] == "20" // one page, often without a mistake
				isExact := r[3] == "1.00"
				if wantExact && !isExact || isExact && !mayBeExact || r[4] != "0" {
					t.Errorf("%s records, %s: %s, %s without an answer", r[1], r[2], r[3], r[4])
				}
			}
		})
	}
}

func TestTasksDependOnTheSeedAlone(t *testing.T) {
	seen := map[string]bool{}
	for number := range 2 * len(questions) {
		task := MakeTask(1, 40, number)
		if again := MakeTask(1, 40, number); again.Text != task.Text || again.Question != task.Question {
			t.Errorf("task %d is another one the second time", number)
		}
		if n := strings.Count(task.Text, "\n") + 1; n != 40 {
			t.Errorf("task %d has %d records", number, n)
		}
		seen[task.Text] = true
	}
	if other := MakeTask(2, 40, 0); len(seen) != 2*len(questions) || seen[other.Text] {
		t.Errorf("there are %d different texts", len(seen))
	}
}

func TestScoresAreThoseOfOOLONG(t *testing.T) {
	for _, c := range []struct {
		want, answer string
		score        float64
	}{
		{"12", "12", 1},
		{"12", "11", 0.75},
		{"12", "14", 0.5625},
		{"12", "many", 0},
		{"12", "", 0},
		{"billing", "billing", 1},
		{"billing", "delivery", 0},
		{"billing", "", 0},
	} {
		t.Run(c.want, func(t *testing.T) {
			task := Task{Want: c.want}
			if score := task.Score(c.answer); score != c.score {
				t.Errorf("%s for %s: %s", c.answer, c.want, strconv.FormatFloat(score, 'f', -1, 64))
			}
		})
	}
}

func TestTheCommandNamesItsMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"no model":                      nil,
		`"5" is not a number`:           {"-model", "a/b", "-records", "50,5"},
		"flag provided but not defined": {"-nonsense"},
	} {
		t.Run(want, func(t *testing.T) {
			err := start(t.Context(), args, os.Stdout, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", args, err)
			}
		})
	}
}
