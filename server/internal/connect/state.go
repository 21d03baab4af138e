package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rlmhq/rlm/internal/data/openfile"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/server/internal/snippets"
	"github.com/rlmhq/rlm/tiers"
)

// maxState is the maximum size of a snapshot in a message, in bytes.
const maxState = 45 << 20

type (
	snapshotParams struct {
		ofOne
		Path string `json:"path,omitempty" jsonschema:"a new file for it, instead of the result"`
	}
	snapshotResult struct {
		Snapshot []byte `json:"snapshot,omitempty"`
	}
)

// snapshot writes the variables of a session.
func (s *server) snapshot(ctx context.Context, e *entry, p snapshotParams) (*snapshotResult, error) {
	if p.Path != "" {
		return &snapshotResult{}, s.snapshotTo(ctx, e, p.Path)
	}

	var data bytes.Buffer
	if err := e.session.Snapshot(ctx, limitedWriter{&data, maxState}); err != nil {
		return nil, err
	}
	return &snapshotResult{data.Bytes()}, nil
}

// snapshotTo writes a snapshot to a new file.
func (s *server) snapshotTo(ctx context.Context, e *entry, path string) (err error) {
	if !s.options.Files {
		return invalid("this connection cannot write files of the server")
	}

	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	return e.session.Snapshot(ctx, file)
}

// limitedWriter is a buffer that fails beyond a number of bytes.
type limitedWriter struct {
	to   *bytes.Buffer
	most int
}

// Room implements [snapshot.Bounded].
func (w limitedWriter) Room() int64 { return int64(w.most - w.to.Len()) }

// Write implements io.Writer.
func (w limitedWriter) Write(data []byte) (int, error) {
	if w.to.Len()+len(data) > w.most {
		return 0, fmt.Errorf("it has more than %s: give a path", quantity.IBytes(w.most))
	}
	return w.to.Write(data)
}

type (
	restoreParams struct {
		ofOne
		Path     string `json:"path,omitempty"`
		Snapshot []byte `json:"snapshot,omitempty"`
	}
	restoreResult struct {
		Variables int          `json:"variables"`
		Left      []tiers.Left `json:"left_behind,omitempty"`
	}
)

// restore loads a snapshot into a session that has not run a snippet yet.
func (s *server) restore(ctx context.Context, e *entry, p restoreParams) (*restoreResult, error) {
	var from io.Reader = bytes.NewReader(p.Snapshot)
	switch {
	case (p.Path == "") == (len(p.Snapshot) == 0):
		return nil, invalid("give a path or a snapshot")
	case p.Path != "" && !s.options.Files:
		return nil, invalid("this connection cannot read files of the server")
	case p.Path != "":
		file, err := openfile.Regular(p.Path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}

	report, err := e.session.Restore(ctx, from)
	return &restoreResult{report.Moved, report.Left}, err
}

type (
	filesParams struct {
		ofOne
		Dir string `json:"dir,omitempty" jsonschema:"an empty folder for them, instead of the result"`
	}
	filesResult struct {
		Files   []results.File `json:"files"`
		Refused []string       `json:"refused,omitempty" jsonschema:"entries that are not there, with the reason"`
		Lost    string         `json:"lost,omitempty" jsonschema:"why files that snippets wrote are gone"`
	}
)

// files copies the files that snippets wrote below /out. It fails if the session has no /out.
func (s *server) files(ctx context.Context, e *entry, p filesParams) (_ *filesResult, err error) {
	dir, inline := p.Dir, 0
	switch {
	case dir != "" && !s.options.Files:
		return nil, invalid("this connection cannot write files of the server")
	case dir == "":
		inline = snippets.MaxInline
		if dir, err = os.MkdirTemp("", "rlm-files-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}

	collected, err := e.session.Files(ctx, dir)
	if err != nil {
		return nil, err
	}

	result := &filesResult{Refused: collected.Refused, Lost: collected.Lost}
	result.Files, err = results.ListFolder(dir, inline, map[string]bool{})
	return result, err
}
