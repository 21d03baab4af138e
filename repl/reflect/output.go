package reflect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// Analysis is the finding of a reflection. Reasoning is always set; other fields are
// empty if the model left them out.
type Analysis struct {
	Reasoning           string     `json:"reasoning"`
	ErrorIdentification string     `json:"error_identification"`
	RootCauseAnalysis   string     `json:"root_cause_analysis"`
	CorrectApproach     string     `json:"correct_approach"`
	KeyInsight          string     `json:"key_insight"`
	ExtractedLearnings  []Learning `json:"extracted_learnings"`
	SkillTags           []SkillTag `json:"skill_tags"`
	// Raw is the model's submission, unchanged except for members that the loop adds: the record of
	// the run under "rr_trace", "partial": true if the analysis is from the synthesis, and
	// "timeout": true if there is no analysis.
	Raw map[string]json.RawMessage `json:"raw"`
}

// Learning is one lesson.
type Learning struct {
	Learning string `json:"learning"`
	// AtomicityScore rates how well the lesson is a single idea, from 0 to 1.
	AtomicityScore float64 `json:"atomicity_score"`
	Evidence       string  `json:"evidence"`
}

// SkillTag is a verdict on a strategy of the skillbook.
type SkillTag struct {
	ID string `json:"id"`
	// Tag is "helpful", "harmful" or "neutral", or the model's own word.
	Tag string `json:"tag"`
}

// The members of Raw that the loop sets. A model cannot set them.
const (
	rawTrace   = "rr_trace"
	rawTimeout = "timeout"
	rawPartial = "partial"
)

// maxOutput bounds an analysis, in bytes of JSON.
const maxOutput = 1 << 20

// parseAnalysis reads the value that a model passed to FINAL. It is lenient: a value that is not an
// object is the reasoning, a string instead of a list is its single entry, entries without their
// main text are dropped, and numbers may be strings. Raw keeps the submission. It rejects an output
// that is too large or has no reasoning, which justifies all other fields.
func parseAnalysis(value json.RawMessage) (Analysis, error) {
	if len(value) > maxOutput {
		return Analysis{}, fmt.Errorf(
			"the analysis has %d bytes, more than %d: shorten it", len(value), maxOutput,
		)
	}

	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil || fields == nil {
		if !json.Valid(value) {
			return Analysis{}, errors.New("the analysis is not valid JSON")
		}
		fields = map[string]json.RawMessage{"reasoning": value}
	}

	o := Analysis{
		Reasoning:           textOf(fields["reasoning"]),
		ErrorIdentification: textOf(fields["error_identification"]),
		RootCauseAnalysis:   textOf(fields["root_cause_analysis"]),
		CorrectApproach:     textOf(fields["correct_approach"]),
		KeyInsight:          textOf(fields["key_insight"]),
		ExtractedLearnings:  learningsOf(fields["extracted_learnings"]),
		SkillTags:           tagsOf(fields["skill_tags"]),
		Raw:                 maps.Clone(fields),
	}

	for _, own := range []string{rawTrace, rawTimeout, rawPartial} {
		delete(o.Raw, own)
	}
	if strings.TrimSpace(o.Reasoning) == "" {
		return o, errors.New(`the analysis has no "reasoning": say what happened and how you know`)
	}
	return o, nil
}

// textOf returns a value as text: a string verbatim, null as "", any other value as JSON.
func textOf(value json.RawMessage) string {
	if string(value) == "null" {
		return ""
	}
	return texts.Show(value)
}

// entriesOf returns the entries of a list. Any other value is treated as a list of one entry.
func entriesOf(value json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		return list
	}
	if textOf(value) == "" {
		return nil
	}
	return []json.RawMessage{value}
}

// objectOf returns an entry as an object; an entry that is not an object becomes its main member.
func objectOf(entry json.RawMessage, main string) map[string]json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(entry, &object) == nil {
		return object
	}
	return map[string]json.RawMessage{main: entry}
}

func learningsOf(value json.RawMessage) []Learning {
	learnings := []Learning{}
	for _, entry := range entriesOf(value) {
		object := objectOf(entry, "learning")
		l := Learning{
			Learning: textOf(object["learning"]), Evidence: textOf(object["evidence"]),
			AtomicityScore: score(object["atomicity_score"]),
		}

		if l.Learning != "" {
			learnings = append(learnings, l)
		}
	}

	return learnings
}

// score returns a number from 0 to 1, or 0 for other values.
func score(value json.RawMessage) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(textOf(value)), 64)
	if err != nil || n != n {
		return 0
	}
	return min(max(n, 0), 1)
}

func tagsOf(value json.RawMessage) []SkillTag {
	tags := []SkillTag{}
	for _, entry := range entriesOf(value) {
		object := objectOf(entry, "id")
		t := SkillTag{ID: textOf(object["id"]), Tag: textOf(object["tag"])}
		if t.Tag == "" {
			t.Tag = "neutral"
		}
		if t.ID != "" {
			tags = append(tags, t)
		}
	}
	return tags
}

// direct returns a reply that is itself an analysis: a JSON object, alone or in a fence.
func direct(reply string) (value json.RawMessage, ok bool) {
	text := strings.TrimSpace(reply)
	if rest, fenced := strings.CutPrefix(text, "```"); fenced {
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(rest, "json"), "```"))
	}
	value = json.RawMessage(text)
	return value, bytes.HasPrefix(value, []byte("{")) && json.Valid(value)
}

// add sets a member of Raw.
func (o *Analysis) add(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	if o.Raw == nil {
		o.Raw = map[string]json.RawMessage{}
	}

	o.Raw[name] = data
	return nil
}
