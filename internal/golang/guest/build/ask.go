package build

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rlmhq/rlm/internal/snippet/frame"
)

// Built is a compiled session.
type Built struct {
	// Program is an executable file.
	Program []byte
	// Refs are the refs of every snippet, for the next request.
	Refs [][]Ref
}

// maxImports bounds the packages that one request may import.
const maxImports = 100

var errProtocol = errors.New("the compiler's process sent an invalid message")

// Ask sends one request to a worker. A mistake in a snippet is a [*CompileError]. wants are
// packages that Request.Toolchain must contain before the program can be built. After any other
// error, the worker is unusable.
//
// The worker is not trusted. Run its program only behind a wall, and send its refs only to a
// worker.
func Ask(conn io.ReadWriter, request *Request) (built Built, wants []string, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return Built{}, nil, err
	}
	if err := frame.NewWriter(conn, MaxFrame).Write(kindBuild, body); err != nil {
		return Built{}, nil, err
	}

	in := frame.NewReader(conn, MaxFrame)
	for {
		kind, body, err := in.Next()
		if err != nil {
			return Built{}, nil, err
		}
		switch kind {
		case kindMissing:
			var m missing
			err := json.Unmarshal(body, &m)
			return Built{}, m.Paths[:min(len(m.Paths), maxImports)], err
		case kindFailed:
			failure := &CompileError{}
			if err := json.Unmarshal(body, failure); err != nil {
				return Built{}, nil, fmt.Errorf("%w: %w", errProtocol, err)
			}
			return Built{}, nil, failure
		case kindRefs:
			if err := json.Unmarshal(body, &built.Refs); err != nil {
				return Built{}, nil, fmt.Errorf("%w: %w", errProtocol, err)
			}
		case kindProgram:
			if len(built.Refs) != len(request.Snippets) {
				return Built{}, nil, errProtocol
			}
			built.Program = append([]byte(nil), body...)
			return built, nil, nil
		default:
			return Built{}, nil, errProtocol
		}
	}
}

// Stopped returns the error of a compilation that was stopped or failed.
func Stopped(why string) error {
	return &CompileError{Type: "CompileError", Message: why, Text: why + "\n"}
}
