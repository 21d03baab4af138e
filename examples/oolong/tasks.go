package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Task is a question about records whose labels do not appear in the text.
type Task struct {
	Text     string // the records, one per line
	Question string
	Contract json.RawMessage // the answer's contract
	Want     string
}

// record is a message with its topic, which the text does not show.
type record struct {
	month, day, customer, topic int
	text                        string
}

var months = []string{"January", "February", "March", "April"}

// relations are the possible answers of a comparison.
var relations = []string{"less common than", "as common as", "more common than"}

// question generates a question about records. There is no clear answer if two topics tie.
type question func(rng *rand.Rand, records []record) (text, want string, isClear bool)

// questions are the kinds of questions in OOLONG: counts, the most and the least common label, and
// comparisons, some of them over only a part of the records.
var questions = []question{
	func(rng *rand.Rand, records []record) (string, string, bool) {
		t := rng.IntN(len(topics))
		return "How many messages are about " + topics[t].name + "?", strconv.Itoa(count(records)[t]), true
	},
	func(_ *rand.Rand, records []record) (string, string, bool) {
		want, isClear := extreme(count(records), 1)
		return "Which topic is the most common?", want, isClear
	},
	func(rng *rand.Rand, records []record) (string, string, bool) {
		a := rng.IntN(len(topics))
		b := (a + 1 + rng.IntN(len(topics)-1)) % len(topics)
		counts := count(records)
		relation := relations[1+max(-1, min(1, counts[a]-counts[b]))]
		return fmt.Sprintf("Are messages about %s more common than, less common than or as common as "+
			"messages about %s?", topics[a].name, topics[b].name), relation, true
	},
	func(_ *rand.Rand, records []record) (string, string, bool) {
		want, isClear := extreme(count(records), -1)
		return "Which topic is the least common?", want, isClear
	},
	func(rng *rand.Rand, records []record) (string, string, bool) {
		t, customer := rng.IntN(len(topics)), records[rng.IntN(len(records))].customer
		part := slices.DeleteFunc(slices.Clone(records), func(r record) bool { return r.customer != customer })
		return fmt.Sprintf("How many messages of customer %d are about %s?", customer, topics[t].name),
			strconv.Itoa(count(part)[t]), true
	},
	func(rng *rand.Rand, records []record) (string, string, bool) {
		month := rng.IntN(len(months))
		part := slices.DeleteFunc(slices.Clone(records), func(r record) bool { return r.month != month })
		want, isClear := extreme(count(part), 1)
		return "Which topic is the most common in " + months[month] + "?", want, isClear
	},
}

// count returns the number of records for each topic.
func count(records []record) []int {
	counts := make([]int, len(topics))
	for _, r := range records {
		counts[r.topic]++
	}
	return counts
}

// extreme returns the topic with the most records, or with the fewest if sign is -1. It also
// returns whether the topic is unique.
func extreme(counts []int, sign int) (name string, isClear bool) {
	best := 0
	for t, n := range counts {
		switch {
		case sign*n > sign*counts[best]:
			best, isClear = t, true
		case t == 0:
			isClear = true
		case n == counts[best]:
			isClear = false
		}
	}
	return topics[best].name, isClear
}

// MakeTask generates the task with the given number. The same arguments yield the same task.
func MakeTask(seed uint64, size, number int) Task {
	rng := rand.New(rand.NewPCG(seed, uint64(size)<<32|uint64(number))) //nolint:gosec // repeatable on purpose
	for {
		records := makeRecords(rng, size)
		text, want, isClear := questions[number%len(questions)](rng, records)
		if isClear {
			return newTask(records, text, want)
		}
	}
}

// makeRecords generates records in order of date. Some topics are more common.
func makeRecords(rng *rand.Rand, size int) []record {
	var common []int // topics, some of them repeated
	for t := range topics {
		common = append(common, slices.Repeat([]int{t}, 3+rng.IntN(10))...)
	}

	customers := max(3, size/20)
	records := make([]record, size)
	for i := range records {
		r := record{
			month: i * len(months) / size, day: 1 + i*len(months)*28/size%28,
			customer: 100 + rng.IntN(customers), topic: pick(rng, common),
		}
		r.text = fill(rng, pick(rng, topics[r.topic].texts))
		records[i] = r
	}
	return records
}

var blank = regexp.MustCompile(`\{\w+\}`)

// fill fills in the blanks of a text.
func fill(rng *rand.Rand, text string) string {
	return blank.ReplaceAllStringFunc(text, func(name string) string { return pick(rng, words[name]) })
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// newTask turns records and a question into a task.
func newTask(records []record, text, want string) Task {
	var lines, names, meanings []string
	for _, r := range records {
		lines = append(lines, fmt.Sprintf("Date: 2025-%02d-%02d || Customer: %d || Message: %s",
			r.month+1, r.day, r.customer, r.text))
	}
	for _, t := range topics {
		names = append(names, t.name)
		meanings = append(meanings, fmt.Sprintf("%s (%s)", t.name, t.meaning))
	}

	contract := map[string]any{"enum": names}
	form := "the topic alone"
	switch {
	case slices.Contains(relations, want):
		contract, form = map[string]any{"enum": relations}, `"more common than", "less common than" or "as common as"`
	case !slices.Contains(names, want):
		contract, form = map[string]any{"type": "integer"}, "the number alone"
	}
	raw, err := json.Marshal(contract)
	if err != nil {
		panic(err) // a map of strings is always valid
	}

	return Task{
		Text: strings.Join(lines, "\n"),
		Question: "Each line of the context is a message to a shop. A message has exactly one topic, which its " +
			"line does not name: " + strings.Join(meanings, ", ") + ".\nQuestion: " + text +
			"\nThe answer is " + form + ".",
		Contract: raw, Want: want,
	}
}

// Score is OOLONG's score: 1 for the right label, and 0.75 to the power of the distance for a
// number. Anything that is not an answer scores 0.
func (t *Task) Score(answer string) float64 {
	want, err := strconv.Atoi(t.Want)
	if err != nil {
		if answer == t.Want {
			return 1
		}
		return 0
	}
	got, err := strconv.Atoi(answer)
	if err != nil {
		return 0
	}
	return math.Pow(0.75, math.Abs(float64(got-want)))
}
