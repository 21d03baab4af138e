package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	strict "github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// Limits on arguments and results.
const (
	maxContexts = 100
	maxValue    = 1 << 20 // bytes of a value in a result
	maxPicture  = 1 << 20 // bytes of a picture in a result
)

type openIn struct {
	Contexts []contextIn `json:"contexts,omitempty" jsonschema:"the inputs, each with one of path, text and value"`
}

type contextIn struct {
	Path  string  `json:"path,omitempty" jsonschema:"a file or folder of the host"`
	Text  *string `json:"text,omitempty"`
	Value any     `json:"value,omitempty" jsonschema:"JSON text, which snippets see decoded"`
}

// forms returns how many of the three kinds of content a context has.
func (c *contextIn) forms() (n int) {
	for _, has := range []bool{c.Path != "", c.Text != nil, c.Value != nil} {
		if has {
			n++
		}
	}
	return n
}

// keepDigits takes the values from the client's original JSON, because the SDK has decoded their
// numbers as float64.
func (in *openIn) keepDigits(arguments json.RawMessage) error {
	var sent struct {
		Contexts []struct {
			Value json.RawMessage `json:"value"`
		} `json:"contexts"`
	}
	if err := strict.Unmarshal(arguments, &sent); err != nil {
		return fmt.Errorf("cannot decode the contexts: %w", err)
	}

	for i := range in.Contexts {
		if in.Contexts[i].Value != nil && i < len(sent.Contexts) {
			in.Contexts[i].Value = sent.Contexts[i].Value
		}
	}
	return nil
}

type openOut struct {
	Handle   string        `json:"session" jsonschema:"for rlm_exec, rlm_ask, rlm_files and rlm_close"`
	Contexts []contextInfo `json:"contexts"`
	Notes    []string      `json:"notes,omitempty" jsonschema:"what snippets do not see as it is"`
}

type contextInfo struct {
	Variable string `json:"variable"`
	Name     string `json:"name"`
}

type execIn struct {
	Code     string `json:"source" jsonschema:"the value of its last expression is printed, as in a notebook"`
	Handle   string `json:"session,omitempty" jsonschema:"from rlm_open; without one, nothing is kept after the call"`
	Language string `json:"language,omitempty" jsonschema:"python or go; detected by default"`
}

type execOut struct {
	Run       string       `json:"run" jsonschema:"the resource rlm://runs/{run} has the whole record"`
	Status    tiers.Status `json:"status"`
	Tier      string       `json:"tier"`
	Stdout    string       `json:"stdout"`
	Stderr    string       `json:"stderr,omitempty"`
	Value     any          `json:"value,omitempty" jsonschema:"the value of FINAL(...)"`
	Exception *exception   `json:"exception,omitempty"`
	Limit     tiers.Limit  `json:"limit,omitempty" jsonschema:"the limit that fired"`
	Files     []fileInfo   `json:"files,omitempty"`
	Notes     []string     `json:"notes,omitempty"`
}

type exception struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
}

type closeIn struct {
	Handle string `json:"session"`
}

type closeOut struct {
	Closed bool `json:"closed"`
}

// addSessionTools adds the tools for handles and snippets.
func (s *Server) addSessionTools(server *mcp.Server) {
	closed, isOpen := false, true
	isDestructive := s.cfg.Functions != "" // functions may have destructive effects
	addTool(s, server, &mcp.Tool{
		Name: "rlm_open", Title: "Open a sandbox over inputs", Description: s.describeOpen(),
		Annotations: &mcp.ToolAnnotations{OpenWorldHint: &closed, DestructiveHint: &closed},
	}, func(ctx context.Context, req *mcp.CallToolRequest, in openIn) (*mcp.CallToolResult, openOut, error) {
		return run(ctx, s, req, func(ctx context.Context, _ *call) (_ *mcp.CallToolResult, out openOut, err error) {
			if err := in.keepDigits(req.Params.Arguments); err != nil {
				return nil, out, err
			}
			err = s.cfg.Work(ctx, func(ctx context.Context) (err error) {
				out, err = s.openHandle(ctx, in)
				return err
			})
			return nil, out, err
		})
	})

	addTool(s, server, &mcp.Tool{
		Name: "rlm_exec", Title: "Run code in a sandbox", Description: s.describeExec(),
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &isDestructive, OpenWorldHint: &isOpen},
	}, func(ctx context.Context, req *mcp.CallToolRequest, in execIn) (*mcp.CallToolResult, execOut, error) {
		return run(ctx, s, req, func(ctx context.Context, c *call) (*mcp.CallToolResult, execOut, error) {
			return s.exec(ctx, c, in)
		})
	})

	addTool(s, server, &mcp.Tool{
		Name: "rlm_close", Title: "End a session", Description: "Ends a session with its variables and files.",
		Annotations: &mcp.ToolAnnotations{OpenWorldHint: &closed, IdempotentHint: true},
	}, func(ctx context.Context, _ *mcp.CallToolRequest, in closeIn) (*mcp.CallToolResult, closeOut, error) {
		h, leave, err := s.handles.use(ctx, in.Handle)
		if err != nil {
			return nil, closeOut{}, err
		}
		defer leave()
		return nil, closeOut{true}, s.handles.forget(h)
	})
}

func (s *Server) describeOpen() string {
	text := "Opens a sandbox and returns a session. Snippets see the contexts as context, context_1 and so on: " +
		"a file as a str, a folder as a mapping of relative paths to texts. A context can be far larger than " +
		"your window: look at parts of it."
	text += " " + s.cfg.PathHelp

	if len(s.cfg.Contexts) > 0 {
		text += " The first contexts are those of the user: " + strings.Join(s.cfg.Contexts, ", ") + "."
	}

	return text + fmt.Sprintf(" At most %d sessions are open; one ends after %v without a call.",
		s.cfg.Handles, s.cfg.Idle)
}

func (s *Server) describeExec() string {
	text := "Runs Python or Go in a sandbox, without the network and the files of the host. With a session, " +
		"variables stay for the next snippet. FINAL(value) ends the snippet with a value. Only what the " +
		"snippet prints or returns comes back, so loop and filter in code."

	if s.cfg.Functions != "" {
		text += "\n\n" + s.cfg.Functions
	}
	return text
}

// openHandle answers rlm_open.
func (s *Server) openHandle(ctx context.Context, in openIn) (out openOut, err error) {
	given, closeFiles, err := s.readGiven(ctx, in)
	defer closeFiles()
	if err != nil {
		return out, err
	}
	names := slices.Clone(s.cfg.Contexts)
	for _, one := range given {
		names = append(names, one.Name)
	}

	place, err := s.handles.reserve()
	if err != nil {
		return out, err
	}

	var h *handle
	if h, err = s.open(ctx, given); err == nil {
		h.name = place
		if out.Notes, err = h.session.CheckContexts(ctx); err == nil {
			err = s.handles.put(place, h)
		}
		if err != nil {
			err = errors.Join(err, h.session.Close())
		}
	}
	if err != nil {
		return out, errors.Join(err, s.handles.put(place, nil))
	}

	out.Handle, out.Contexts = place, []contextInfo{}
	for i, name := range names {
		variable := "context"
		if i > 0 {
			variable = fmt.Sprintf("context_%d", i)
		}
		out.Contexts = append(out.Contexts, contextInfo{variable, name})
	}
	return out, nil
}

// readGiven returns the contexts that a client provides. Close their files once a session has
// them.
func (s *Server) readGiven(ctx context.Context, in openIn) (given []Given, closeFiles func(), err error) {
	closeFiles = func() {
		for _, one := range given {
			if one.Close != nil {
				one.Close()
			}
		}
	}
	if n := len(s.cfg.Contexts) + len(in.Contexts); n > maxContexts {
		return nil, closeFiles, fmt.Errorf("there are %d contexts: give at most %d, or a folder", n, maxContexts)
	}

	for i := range in.Contexts {
		c := &in.Contexts[i]
		name := fmt.Sprintf("context %d", i+1)
		var one Given
		switch {
		case c.forms() != 1:
			return given, closeFiles, fmt.Errorf("%s has %d of path, text and value: give one", name, c.forms())
		case c.Path != "":
			if one, err = s.cfg.Read(ctx, c.Path); err != nil {
				return given, closeFiles, err
			}
		case c.Text != nil:
			one = Given{Name: name, Text: *c.Text, Context: rlm.Text(name, *c.Text)}
		default:
			text, err := c.json()
			if err != nil {
				return given, closeFiles, fmt.Errorf("%s: %w", name, err)
			}
			one = Given{Name: name, Text: string(text), Context: rlm.Value(name, text)}
		}
		given = append(given, one)
	}
	return given, closeFiles, nil
}

// exec answers rlm_exec.
func (s *Server) exec(ctx context.Context, c *call, in execIn) (result *mcp.CallToolResult, out execOut, err error) {
	job := tiers.Job{Source: in.Code, Language: tiers.Language(in.Language), Stdout: &noteWriter{call: c}}
	switch job.Language {
	case "":
		job.Language = s.cfg.Detect(ctx, in.Code)
	case tiers.Python, tiers.Go:
	default:
		return nil, out, fmt.Errorf("language %.40q: give python or go", in.Language)
	}

	record := s.runs.begin("rlm_exec", in.Handle, in.Code)
	err = s.cfg.Work(ctx, func(ctx context.Context) error {
		return s.with(ctx, in.Handle, func(h *handle) error {
			r, err := h.session.RunJob(h.calls.In(ctx), job)
			if err != nil {
				return err
			}
			h.keep(r.Artefacts)
			result, out = describe(r)
			return nil
		})
	})

	out.Run = record.ID
	s.runs.end(record, out, err)
	return result, out, err
}

// describe returns the result of a snippet, both as text for the model and as an object.
func describe(r rlm.Result) (*mcp.CallToolResult, execOut) {
	out := execOut{
		Status: r.Status, Tier: r.Tier, Stdout: strings.ToValidUTF8(r.Stdout, "\uFFFD"),
		Stderr: strings.ToValidUTF8(r.Stderr, "\uFFFD"), Limit: r.Limit,
	}
	if x := r.Exception; x != nil {
		out.Exception = &exception{x.Type, x.Message, x.Traceback}
	}
	if r.Dropped > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%s bytes of output were dropped: print less",
			quantity.Comma(r.Dropped)))
	}

	for _, d := range r.Denied {
		out.Notes = append(out.Notes, d.Target+" is refused: "+d.Reason)
	}
	if r.Lost != nil {
		out.Notes = append(out.Notes, r.Lost.Reason)
	}
	if m := r.Moved; m != nil {
		for _, left := range m.Report.Left {
			out.Notes = append(out.Notes, fmt.Sprintf("the variable %s was left behind in tier %s: %s",
				left.Name, m.From, left.Reason))
		}
	}

	exitedWell := r.Status == tiers.StatusExited && r.Exception.ExitCode == 0
	isError := r.Status != tiers.StatusOK && !exitedWell
	value := ""
	if r.Final != nil {
		if len(r.Final.Value) > maxValue {
			isError = true
			out.Notes = append(out.Notes, fmt.Sprintf("the value has %s bytes, which is too much for a result: "+
				"keep it in a variable, and return a part or a summary", quantity.Comma(len(r.Final.Value))))
		} else {
			valid := bytes.ToValidUTF8(r.Final.Value, []byte("\uFFFD"))
			out.Value, value = json.RawMessage(valid), string(valid)
		}
	}

	parts := []string{out.Stdout, value, out.Stderr}
	if x := out.Exception; x != nil {
		parts = append(parts, cmp.Or(strings.ToValidUTF8(x.Traceback, "\uFFFD"), x.Type+": "+x.Message))
	}
	if out.Limit != "" {
		parts = append(parts, fmt.Sprintf("limit: %s", out.Limit))
	}

	text := joinLines(append(parts, out.Notes...))
	result := &mcp.CallToolResult{IsError: isError, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	for _, a := range r.Artefacts {
		out.Files = append(out.Files, infoOf(a))
		if strings.HasPrefix(a.Type, "image/") && len(a.Data) <= maxPicture {
			result.Content = append(result.Content, &mcp.ImageContent{Data: a.Data, MIMEType: a.Type})
		}
	}
	return result, out
}

// joinLines joins the non-empty parts, each on separate lines.
func joinLines(parts []string) string {
	var all []string
	for _, part := range parts {
		if part = strings.TrimSuffix(part, "\n"); part != "" {
			all = append(all, part)
		}
	}
	return strings.Join(all, "\n")
}

// noteWriter reports the last line of a snippet's output to the client.
type noteWriter struct {
	call *call
}

// Write implements [io.Writer].
func (w *noteWriter) Write(b []byte) (int, error) {
	lines := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	if last := lines[len(lines)-1]; len(last) > 0 {
		w.call.note(strings.ToValidUTF8(string(last[:min(len(last), 4*maxNote)]), "\uFFFD"))
	}
	return len(b), nil
}
