package loops

import (
	"io"
	"sync"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/code"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/repl/ledger"
)

// jsonEvent is a line of --events. Its names are part of the interface; see docs/reference/cli.md.
type jsonEvent struct {
	ledger.Event
	// Code is the whole code of a snippet. Stdout and Stderr are its output.
	Code   string         `json:"code,omitempty"`
	Stdout string         `json:"stdout,omitempty"`
	Stderr string         `json:"stderr,omitempty"`
	Files  []results.File `json:"files,omitempty"`
}

// eventWriter prints events. Several loops may report at the same time.
type eventWriter struct {
	w   io.Writer
	mu  sync.Mutex
	err error // the first error, after which nothing more is written
}

func (l *eventWriter) event(e ledger.Event) {
	line := jsonEvent{Event: e}
	if ran := e.Ran; ran != nil && e.Kind == ledger.EventSnippet {
		line.Code, line.Stdout, line.Stderr = ran.Source, ran.Stdout, ran.Stderr
		for _, one := range ran.Artefacts {
			file := results.DescribeFile(one.Name, one.Type, one.Data, code.MaxInline)
			file.Base64 = nil // --out saves it
			line.Files = append(line.Files, file)
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = cli.PrintLine(l.w, line)
	}
}
