package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// turn is a message of a conversation.
type turn struct {
	Role llm.Role `json:"role"`
	// Texts are the parts of the message.
	Texts  []string     `json:"texts,omitempty"`
	Images []llm.Image  `json:"images,omitempty"`
	Files  []attachment `json:"files,omitempty"`
	// Call is set if the message is a call of a client's function, or the result of one.
	Call *earlierCall `json:"call,omitempty"`
}

// attachment is a file in a message: the ID of an uploaded file, or the content.
type attachment struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	Data []byte `json:"data,omitempty"`
}

func (t *turn) text() string {
	text := strings.Join(t.Texts, "\n\n")
	if t.Call != nil {
		return t.Call.text(text)
	}
	return text
}

// size returns the length of the text, in bytes.
func (t *turn) size() (n int) {
	if t.Call != nil && !t.Call.isResult() {
		return len(t.text())
	}
	for _, text := range t.Texts {
		n += len(text) + len("\n\n")
	}
	return max(n-len("\n\n"), 0)
}

// weight returns the size of a message with its pictures and files, in bytes.
func (t *turn) weight() int {
	n := t.size()
	for i := range t.Images {
		n += len(t.Images[i].Data)
	}
	for i := range t.Files {
		n += len(t.Files[i].Data)
	}
	return n
}

// These are the bounds of a conversation.
const (
	maxTurns    = 2_000
	maxEarlier  = 200      // responses in a chain of continuations
	shownOfLong = 2_000    // bytes of both ends of a long message in the question
	maxTexts    = 64 << 20 // bytes of all texts
)

// part is a part of a message, in a chat completion or a response.
type part struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Refusal  string          `json:"refusal"`
	ImageURL json.RawMessage `json:"image_url"` // a text, or an object with url
	File     *struct {
		ID   string `json:"file_id"`
		Data string `json:"file_data"`
		Name string `json:"filename"`
	} `json:"file"`
	ID   string `json:"file_id"`
	Data string `json:"file_data"`
	URL  string `json:"file_url"`
	Name string `json:"filename"`
}

// content is a list of parts. In JSON, a string is also allowed.
type content []part

// UnmarshalJSON implements [json.Unmarshaler].
func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = nil
		if string(data) != "null" {
			*c = content{{Type: "text", Text: text}}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]part)(c))
}

// read makes a turn from a role and parts.
func (c content) read(role, param string) (t turn, err error) {
	roles := map[string]llm.Role{
		"system": llm.RoleSystem, "developer": llm.RoleSystem, "user": llm.RoleUser, "assistant": llm.RoleAssistant,
	}
	if t.Role = roles[role]; t.Role == "" {
		return t, problem.Bad(param+".role", "unknown role %.40q: give system, developer, user or assistant", role)
	}

	for i := range c {
		if err := t.add(&c[i], param+".content"); err != nil {
			return t, err
		}
	}
	return t, nil
}

// add adds a part.
func (t *turn) add(p *part, param string) error {
	switch p.Type {
	case "text", "input_text", "output_text":
		t.Texts = append(t.Texts, p.Text)
	case "refusal":
		t.Texts = append(t.Texts, p.Refusal)
	case "image_url", "input_image":
		image, err := p.image(param)
		t.Images = append(t.Images, image)
		return err
	case "file":
		if p.File == nil {
			return problem.Bad(param, "a part of type file has no file")
		}
		return t.attach(p.File.ID, p.File.Data, p.File.Name, param)
	case "input_file":
		if p.URL != "" {
			return problem.Bad(param, "this server fetches no file_url: upload the file with POST /v1/files")
		}
		return t.attach(p.ID, p.Data, p.Name, param)
	default:
		return problem.Bad(param, "a part has the type %.40q: give text, an image or a file", p.Type)
	}

	return nil
}

// attach adds a file.
func (t *turn) attach(id, data, name, param string) error {
	one := attachment{ID: id, Name: name}
	if (id == "") == (data == "") {
		return problem.Bad(param, "give a file_id or file_data")
	}

	if data != "" {
		if _, rest, is := strings.Cut(data, ";base64,"); is && strings.HasPrefix(data, "data:") {
			data = rest
		}
		content, err := base64.StdEncoding.DecodeString(data)
		if err != nil || len(content) == 0 {
			return problem.Bad(param, "file_data is not base64")
		}
		one.Data = content
	}
	t.Files = append(t.Files, one)
	return nil
}

// image reads a picture, which the request itself must contain.
func (p *part) image(param string) (llm.Image, error) {
	var address string
	if json.Unmarshal(p.ImageURL, &address) != nil {
		var object struct{ URL string }
		if err := json.Unmarshal(p.ImageURL, &object); err != nil {
			return llm.Image{}, problem.Bad(param, "a part of type %s has no image_url", p.Type)
		}
		address = object.URL
	}

	head, data, is := strings.Cut(address, ";base64,")
	kind, isData := strings.CutPrefix(head, "data:")
	content, err := base64.StdEncoding.DecodeString(data)
	known := []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	if !is || !isData || err != nil || !slices.Contains(known, kind) {
		return llm.Image{}, problem.Bad(param,
			"this server fetches no pictures: send a PNG, JPEG, GIF or WebP as a data: URL in base64")
	}
	return llm.Image{Type: kind, Data: content}, nil
}

// asked is a conversation with the client's requirements for the answer.
type asked struct {
	turns []turn
	runs.Spec
	loop       bool // code_interpreter is among the tools
	functions  *functions
	sampling   llm.Sampling
	stop       []string
	maxTokens  int
	background bool
	word       string // Idempotency-Key
	digested   []byte // digest of a response with the key
}

// isDirect reports whether the root model answers without a run.
func (q *asked) isDirect(long int) bool {
	size := 0
	for i := range q.turns {
		size += q.turns[i].size()
		if len(q.turns[i].Files) > 0 {
			return false
		}
	}
	return !q.loop && size <= long
}

// check refuses a conversation that does not end with a question.
func (q *asked) check(param string) error {
	if len(q.turns) > maxTurns {
		return problem.Bad(param, "there are %d messages, more than %d", len(q.turns), maxTurns)
	}
	size := 0
	for i := range q.turns {
		size += q.turns[i].size()
	}

	if size > maxTexts {
		return problem.Bad(param, "the messages have %d bytes, more than %d: upload a file", size, maxTexts)
	}
	if len(q.System) > runs.MaxQuestion {
		return problem.Bad("instructions", "the instructions have %d bytes, more than %d: send a part as a message",
			len(q.System), runs.MaxQuestion)
	}
	if n := len(q.turns); n > 0 && q.turns[n-1].Role == llm.RoleAssistant {
		return problem.Bad(param, "the last message is the assistant's: this server continues no answer that "+
			"the client has begun, because most models do not; end with a message of the user, and request "+
			"the form of the answer with a schema")
	}
	if len(q.turns) == 0 || q.turns[len(q.turns)-1].Role != llm.RoleUser {
		return problem.Bad(param, "the last message is not the user's: add one with a question")
	}
	return nil
}

// ask returns the conversation as a request for a direct answer.
func (q *asked) ask() runs.Ask {
	a := runs.Ask{
		Profile: q.Profile, Schema: q.Schema, MaxTokens: q.maxTokens, Sampling: q.sampling, Stop: q.stop,
		USD: q.Budget.USD, AllowWords: q.functions != nil && !q.functions.must,
	}

	if f := q.functions; f != nil {
		a.Tools, a.OneCall = f.native, f.single
	}

	if q.System != "" {
		a.Messages = append(a.Messages, llm.Message{Role: llm.RoleSystem, Content: q.System})
	}
	for i := range q.turns {
		t := &q.turns[i]
		a.Messages = append(a.Messages, llm.Message{Role: t.Role, Content: t.text(), Images: t.Images})
	}
	return a
}

// request returns the conversation as a run. The last message, without its long parts, is the
// question. The long parts, the files and the earlier messages become contexts.
func (a *API) request(ctx context.Context, tenant string, q *asked) (runs.Request, error) {
	r := runs.Request{Spec: q.Spec, Background: q.background, Idempotency: q.word, Digest: q.digested}
	r.Loop = q.loop
	r.Budget.OutputTokens = int64(q.maxTokens)

	var earlier strings.Builder
	for i := range q.turns {
		t := &q.turns[i]
		for _, f := range t.Files {
			content, err := a.open(ctx, tenant, f)
			if err != nil {
				return r, err
			}
			r.Contents = append(r.Contents, content)
		}
		for n, image := range t.Images {
			name := fmt.Sprintf("image-%d-%d.%s", i+1, n+1, strings.TrimPrefix(image.Type, "image/"))
			r.Contents = append(r.Contents, runs.Content{Name: name, Text: string(image.Data)})
		}
		switch {
		case t.Role == llm.RoleSystem:
			r.System = strings.TrimSpace(r.System + "\n\n" + t.text())
		case i < len(q.turns)-1:
			_, _ = fmt.Fprintf(&earlier, "%s:\n%s\n\n", t.Role, t.text()) // to memory
		}
	}

	var parts []runs.Content
	last := &q.turns[len(q.turns)-1]
	texts := last.Texts
	if last.Call != nil {
		texts = []string{last.text()}
	}
	r.Question, parts = splitQuestion(texts, a.Long)
	r.Contents = append(parts, r.Contents...)
	if earlier.Len() > 0 {
		r.Contents = append(r.Contents, runs.Content{Name: "earlier messages", Text: earlier.String()})
	}
	return r, nil
}

// splitQuestion returns the question of a message and its long parts.
func splitQuestion(texts []string, long int) (question string, parts []runs.Content) {
	var short []string
	left := long
	for i, text := range slices.Backward(texts) { // the question is usually the last part
		if len(text) <= left {
			short = append(short, text)
			left -= len(text)
			continue
		}
		parts = append(parts, runs.Content{Name: fmt.Sprintf("message-%d", i+1), Text: text})
	}
	slices.Reverse(short)
	slices.Reverse(parts)

	question = strings.TrimSpace(strings.Join(short, "\n\n"))
	switch {
	case question == "" && len(parts) > 0:
		text := parts[len(parts)-1].Text
		question = fmt.Sprintf("Do what the message in the context asks. It has %d bytes.\n\n"+
			"It begins with:\n%s\n\nIt ends with:\n%s", len(text),
			strings.ToValidUTF8(text[:min(shownOfLong, len(text))], ""),
			strings.ToValidUTF8(text[max(0, len(text)-shownOfLong):], ""))
	case question == "":
		question = "Describe what the contexts contain."
	}
	return question, parts
}

// open returns a file of a message as a context.
func (a *API) open(ctx context.Context, tenant string, f attachment) (runs.Content, error) {
	if f.ID == "" {
		return runs.Content{Name: f.Name, Text: string(f.Data)}, nil
	}

	file, err := a.Files.Get(ctx, tenant, f.ID)
	if err != nil {
		var missing *problem.Error
		if errors.As(err, &missing) {
			missing.Status, missing.Param = http.StatusBadRequest, "file_id"
		}
		return runs.Content{}, err
	}
	return runs.Content{Name: file.Name, Path: a.Files.Path(file.ID)}, nil
}

// addressOf returns a picture as a data: URL.
func addressOf(image llm.Image) string {
	return "data:" + image.Type + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
}
