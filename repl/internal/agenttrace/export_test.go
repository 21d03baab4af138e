package agenttrace

import "slices"

// New makes a trace from steps, which it numbers from 0, and the raw text from which they were
// made.
func New(steps []Step, raw string) *Trace { return newTrace(slices.Clone(steps), raw, "") }

// Steps returns all steps.
func (t *Trace) Steps() []Step { return t.steps }

// Make makes a trace with a factory that snippets also have. A limit of 0 means the default.
func Make(factory string, source []byte, limit int, system string) (*Trace, error) {
	root, _, err := decodeTrace(source)
	if err != nil {
		return nil, err
	}
	read := func(read func(*talk, located) error) (*Trace, error) {
		t := newTalk(everything)
		if err := read(t, root); err != nil {
			return nil, err
		}
		return t.trace(), nil
	}

	switch factory {
	case "agent":
		return read(readAgent)
	case "reasoning":
		text, _ := root.any.(string)
		return fromReasoning(text), nil
	case "browser-use":
		return read(readBrowserUse)
	case "langchain":
		return read(readLangChain)
	case "conversation":
		if limit == 0 {
			limit = textLen
		}

		return talkOf(root, limit, "")
	case "tau":
		return talkOf(root, everything, system)
	}

	list, _ := root.any.([]any)
	var all []*Trace
	for _, item := range list {
		text, _ := item.(string)
		all = append(all, fromReasoning(text))
	}

	return Combine(all...), nil
}

// Raw returns the text from which the trace was made, and the agent's system prompt.
func (t *Trace) Raw() (text, system string) { return t.raw, t.system }

// Sources returns the description of each form, by name.
func Sources() map[string]string {
	all := map[string]string{}
	for i := range forms {
		all[forms[i].name] = forms[i].source
	}
	return all
}
