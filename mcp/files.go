package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// maxReadFile is the maximum size of a file in a result, in bytes.
const maxReadFile = 8 << 20

type filesIn struct {
	Handle string `json:"session"`
	Name   string `json:"name,omitempty" jsonschema:"the file to return; without one, all files are listed"`
}

type filesOut struct {
	Files []fileInfo `json:"files"`
	Notes []string   `json:"notes,omitempty"`
}

type fileInfo struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int    `json:"bytes"`
}

func infoOf(a tiers.Artefact) fileInfo { return fileInfo{a.Name, a.Type, len(a.Data)} }

func (s *Server) addFiles(server *mcp.Server) {
	closed := false
	addTool(s, server, &mcp.Tool{
		Name: "rlm_files", Title: "List or read the files of a session",
		Description: "Lists the files that snippets of a session made: figures, and the files below /out. " +
			"With a name, it returns that file.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed},
	}, func(ctx context.Context, _ *mcp.CallToolRequest, in filesIn) (*mcp.CallToolResult, filesOut, error) {
		h, leave, err := s.handles.use(ctx, in.Handle)
		if err != nil {
			return nil, filesOut{}, err
		}
		defer leave()
		return h.answerFiles(ctx, in.Name)
	})
}

// answerFiles answers rlm_files.
func (h *handle) answerFiles(ctx context.Context, name string) (*mcp.CallToolResult, filesOut, error) {
	all, notes, err := h.listFiles(ctx)
	if err != nil {
		return nil, filesOut{}, err
	}
	out := filesOut{Files: []fileInfo{}, Notes: notes}

	var names []string
	for _, a := range all {
		names = append(names, a.Name)
		if name == "" || a.Name == name {
			out.Files = append(out.Files, infoOf(a))
		}
		if name == "" || a.Name != name {
			continue
		}
		if len(a.Data) > maxReadFile {
			return nil, out, fmt.Errorf("the file %s has %s bytes, which is too much for a result: read parts of it "+
				"in a snippet", name, quantity.Comma(len(a.Data)))
		}
		return &mcp.CallToolResult{Content: []mcp.Content{contentOf(a)}}, out, nil
	}
	if name != "" {
		return nil, out, fmt.Errorf("there is no file %.100q; there are: %s", name,
			strings.Join(append(names, "no others"), ", "))
	}
	return nil, out, nil
}

func contentOf(a tiers.Artefact) mcp.Content {
	if strings.HasPrefix(a.Type, "image/") {
		return &mcp.ImageContent{Data: a.Data, MIMEType: a.Type}
	}
	r := &mcp.ResourceContents{URI: "rlm://files/" + a.Name, MIMEType: a.Type}
	if utf8.Valid(a.Data) {
		r.Text = string(a.Data)
	} else {
		r.Blob = a.Data
	}
	return &mcp.EmbeddedResource{Resource: r}
}

// listFiles returns the figures, and the files below /out as out/NAME.
func (h *handle) listFiles(ctx context.Context) (all []tiers.Artefact, notes []string, err error) {
	dir, err := os.MkdirTemp("", "rlm-mcp-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	got, err := h.session.Files(ctx, dir)
	if err != nil {
		return nil, nil, err
	}

	for _, why := range got.Refused {
		notes = append(notes, "not collected: "+why)
	}
	if got.Lost != "" {
		notes = append(notes, "not collected: "+got.Lost)
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()

	all = append(all, h.files...)
	left := int64(maxFileBytes)
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if left -= info.Size(); left < 0 {
			size := quantity.Comma(info.Size())
			notes = append(notes, fmt.Sprintf("out/%s has %s bytes, which is too much", name, size))
			return nil
		}

		data, err := root.ReadFile(name)
		kind, _, _ := strings.Cut(mime.TypeByExtension(path.Ext(name)), ";")
		if kind == "" {
			kind = "application/octet-stream"
		}
		all = append(all, tiers.Artefact{Name: "out/" + name, Type: kind, Data: data})
		return err
	})
	return all, notes, err
}
