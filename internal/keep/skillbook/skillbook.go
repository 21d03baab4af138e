package skillbook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// These bounds apply to a skillbook.
const (
	MaxBytes  = 4 << 20
	maxSkills = 20_000
)

// skill is one strategy. Members that this package does not use are preserved.
type skill struct {
	ID            string          `json:"id"`
	Section       string          `json:"section"`
	Content       string          `json:"content"`
	Justification *string         `json:"justification,omitempty"`
	Evidence      *string         `json:"evidence,omitempty"`
	Helpful       int64           `json:"helpful"`
	Harmful       int64           `json:"harmful"`
	Neutral       int64           `json:"neutral"`
	CreatedAt     string          `json:"created_at,omitempty"`
	UpdatedAt     string          `json:"updated_at,omitempty"`
	Embedding     json.RawMessage `json:"embedding,omitempty"`
	Status        string          `json:"status,omitempty"` // active or invalid
	Sources       json.RawMessage `json:"sources,omitempty"`
}

// isActive reports whether the agent uses the skill.
func (s *skill) isActive() bool { return s.Status == "" || s.Status == statusActive }

const statusActive = "active"

// Book is a skillbook. The zero value is an empty one.
type Book struct {
	skills    []*skill // in the order of the file
	sections  []member // lists of IDs, in the order of the file
	nextID    int64
	decisions json.RawMessage // on similar skills
}

// Parse parses the JSON of a skillbook. The error describes the problem and its position.
func Parse(text string) (*Book, error) {
	b, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read the skillbook: %w", err)
	}
	return b, nil
}

func parse(text string) (*Book, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), MaxBytes)
	}
	root, err := members([]byte(text))
	if err != nil {
		return nil, err
	}

	b := &Book{}
	for _, m := range root {
		switch m.name {
		case "skills":
			err = b.readSkills(m.value)
		case "sections":
			b.sections, err = members(m.value)
		case "next_id":
			err = decode(m.value, &b.nextID)
		case "similarity_decisions":
			b.decisions = m.value
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}

	for i, m := range b.sections {
		ids := []string{}
		if err := decode(m.value, &ids); err != nil {
			return nil, fmt.Errorf("sections.%s: %w", m.name, err)
		}
		b.sections[i].ids = ids
	}
	return b, nil
}

func (b *Book) readSkills(raw json.RawMessage) error {
	all, err := members(raw)
	if err != nil {
		return err
	}
	if len(all) > maxSkills {
		return fmt.Errorf("there are %d, more than %d", len(all), maxSkills)
	}

	known := map[string]bool{}
	for _, m := range all {
		s := &skill{}
		if err := decode(m.value, s); err != nil {
			return fmt.Errorf("%q: %w", m.name, err)
		}
		if s.ID == "" {
			s.ID = m.name
		}

		switch {
		case s.ID != m.name:
			return fmt.Errorf("%q has the id %q: both must be the same", m.name, s.ID)
		case known[s.ID]:
			return fmt.Errorf("%q appears twice", m.name)
		case s.Status != "" && s.Status != statusActive && s.Status != "invalid":
			return fmt.Errorf("%q has the status %q: use active or invalid", m.name, s.Status)
		}

		known[s.ID] = true
		b.skills = append(b.skills, s)
	}
	return nil
}

// IsBook reports whether text is the JSON of a skillbook, rather than prose.
func IsBook(text string) bool {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || len(text) > MaxBytes {
		return false
	}
	root, err := members([]byte(text))
	return err == nil && slices.ContainsFunc(root, func(m member) bool {
		return m.name == "skills" && m.value[0] == '{'
	})
}

// Render returns a skillbook as shown to the agent. It returns text that is not the JSON of a
// skillbook unchanged.
func Render(text string) (string, error) {
	if !IsBook(text) {
		return text, nil
	}

	b, err := Parse(text)
	if err != nil {
		return "", err
	}
	return b.Prompt(), nil
}

func (b *Book) find(id string) *skill {
	for _, s := range b.skills {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// Len returns the number of active skills.
func (b *Book) Len() int {
	n := 0
	for _, s := range b.skills {
		if s.isActive() {
			n++
		}
	}
	return n
}

// Tag increments the count of a skill's tag: helpful, harmful or neutral. It reports whether the
// skill and the tag exist.
func (b *Book) Tag(id, tag string, now time.Time) bool {
	s := b.find(id)
	if s == nil {
		return false
	}
	switch tag {
	case "helpful":
		s.Helpful++
	case "harmful":
		s.Harmful++
	case "neutral":
		s.Neutral++
	default:
		return false
	}

	s.UpdatedAt = stamp(now)
	return true
}

// Lesson is a skill to add. Only Content is required.
type Lesson struct {
	Section, Content        string
	Justification, Evidence string
	// Question is the task from which the lesson was learned.
	Question string
}

// Learn adds a lesson, unless an active skill has the same content. It returns the ID of the
// skill.
func (b *Book) Learn(l Lesson, now time.Time) (id string, added bool, err error) {
	for _, s := range b.skills {
		if s.isActive() && normal(s.Content) == normal(l.Content) {
			return s.ID, false, nil
		}
	}
	if len(b.skills) >= maxSkills {
		return "", false, fmt.Errorf("the skillbook has %d skills, the maximum", maxSkills)
	}

	if strings.TrimSpace(l.Section) == "" {
		l.Section = "general"
	}

	s := &skill{
		Section: l.Section, Content: l.Content, Status: statusActive,
		Justification: optional(l.Justification), Evidence: optional(l.Evidence),
		CreatedAt: stamp(now), UpdatedAt: stamp(now), Embedding: json.RawMessage("null"),
	}
	if l.Question != "" {
		s.Sources, err = json.Marshal([]map[string]string{{"sample_question": l.Question}})
		if err != nil {
			return "", false, err
		}
	}

	for s.ID == "" || b.find(s.ID) != nil { // next_id of a file may be too small
		b.nextID++
		s.ID = fmt.Sprintf("%s-%05d", strings.ToLower(strings.Fields(l.Section)[0]), b.nextID)
	}

	b.skills = append(b.skills, s)
	b.file(l.Section, s.ID)
	return s.ID, true, nil
}

// file adds an ID to its section.
func (b *Book) file(section, id string) {
	for i := range b.sections {
		if b.sections[i].name == section {
			b.sections[i].ids = append(b.sections[i].ids, id)
			return
		}
	}
	b.sections = append(b.sections, member{name: section, ids: []string{id}})
}

// Encode returns the JSON of the skillbook.
func (b *Book) Encode() ([]byte, error) {
	skills := make([]member, len(b.skills))
	for i, s := range b.skills {
		raw, err := encode(s)
		if err != nil {
			return nil, err
		}
		skills[i] = member{name: s.ID, value: raw}
	}

	sections := make([]member, len(b.sections))
	for i, m := range b.sections {
		raw, err := encode(m.ids)
		if err != nil {
			return nil, err
		}
		sections[i] = member{name: m.name, value: raw}
	}

	decisions := b.decisions
	if decisions == nil {
		decisions = json.RawMessage("{}")
	}
	root, err := object([]member{
		{name: "skills"},
		{name: "sections"},
		{name: "next_id", value: fmt.Append(nil, b.nextID)},
		{name: "similarity_decisions", value: decisions},
	}, skills, sections)
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer
	if err := json.Indent(&out, root, "", "  "); err != nil {
		return nil, err
	}
	if out.Len() >= MaxBytes {
		return nil, errors.New("the skillbook has grown too large to be read again: remove skills")
	}
	return append(out.Bytes(), '\n'), nil
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// normal returns text in a form for comparisons: in lower case, with single spaces.
func normal(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// stamp formats a time like Python's isoformat.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }
