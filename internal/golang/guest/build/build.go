// Package build turns the snippets of a Go session into a program. [Serve] runs behind a wall, in a
// jail or a container. It parses, checks and compiles hostile code, so the host does not trust its
// answers. [Ask] is the host's end. A [Tool] compiles the standard library, without any snippet.
//
// The package is compiled into container images, so it imports only the standard library and
// packages that are also compiled into the images.
//
// A session is one program. Its top level contains the variables, types and functions of all
// snippets, and one function for the statements of each snippet. A second declaration of a name
// renames the first, so earlier code keeps using the first.
package build

import (
	"encoding/json"
	"errors"
	"go/token"
	"io"
	"runtime"

	"github.com/rlmhq/rlm/internal/snippet/frame"
)

// The kinds of frames between the host and the worker.
const (
	kindBuild   = 'B' // host: Request
	kindMissing = 'N' // worker: missing; the host repeats the request when it has them
	kindFailed  = 'X' // worker: CompileError
	kindRefs    = 'M' // worker: the refs of all snippets
	kindProgram = 'D' // worker: the program
)

// MaxFrame bounds a frame, in bytes. The largest frame is a program.
const MaxFrame = 128 << 20

// Request requests the program of a session.
type Request struct {
	Snippets  []Snippet `json:"snippets"`
	Functions []string  `json:"functions"`
	Inputs    []string  `json:"inputs"` // kinds of package run
	Toolchain Toolchain `json:"toolchain"`
}

// Toolchain describes the compiler, the linker and the packages of a program.
type Toolchain struct {
	// Tools is the folder of the compiler and linker.
	Tools string `json:"tools"`
	// Version is the language version, such as "go1.26". Arch is GOARCH.
	Version string `json:"version"`
	Arch    string `json:"arch"`
	// Exports are the files of the compiled packages, by import path. An empty name marks a
	// package that does not exist.
	Exports map[string]string `json:"exports"`
}

// missing are packages that the host did not provide.
type missing struct {
	Paths []string `json:"paths"`
}

// Serve serves requests until the connection ends, and returns an exit code. If toolchain is
// not nil, it replaces the toolchain of requests.
func Serve(conn io.ReadWriter, toolchain *Toolchain) int {
	in, out := frame.NewReader(conn, MaxFrame), frame.NewWriter(conn, MaxFrame)
	std := newStdlib()
	for {
		_, body, err := in.Next()
		if err != nil {
			return 0
		}
		var request Request
		if json.Unmarshal(body, &request) != nil {
			return 1
		}
		if toolchain != nil {
			request.Toolchain = *toolchain
		}
		if answer(out, &request, std, toolchain != nil) != nil {
			return 1
		}

		runtime.GC()
	}
}

// answer builds one program and sends the outcome. whole means that the host has no other packages.
func answer(out *frame.Writer, request *Request, std *stdlib, whole bool) error {
	if paths := request.missing(); len(paths) > 0 && !whole {
		return send(out, kindMissing, missing{paths})
	}
	program, err := build(request, std)
	var failure *CompileError
	if errors.As(err, &failure) {
		return send(out, kindFailed, failure)
	}
	if err != nil {
		return err
	}

	refs := make([][]Ref, len(request.Snippets))
	for i, s := range request.Snippets {
		refs[i] = s.Refs
	}
	if err := send(out, kindRefs, refs); err != nil {
		return err
	}

	return out.Write(kindProgram, program)
}

func send(out *frame.Writer, kind byte, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return out.Write(kind, body)
}

// missing returns the imports of unchecked snippets for which the request has no export data. It
// ignores syntax errors, which build reports later.
func (r *Request) missing() []string {
	var paths []string
	for i, s := range r.Snippets {
		if s.Refs != nil {
			continue
		}
		u, err := parseUnit(token.NewFileSet(), i+1, s.Source)
		if err != nil {
			continue
		}

		for _, imported := range u.imports {
			if _, ok := r.Toolchain.Exports[imported.path]; !ok && imported.path != "unsafe" &&
				Importable(imported.path) {
				paths = append(paths, imported.path)
			}
		}
	}

	return paths
}

// build checks the snippets and compiles the program.
func build(request *Request, std *stdlib) ([]byte, error) {
	var p *program
	for count := 1; count <= len(request.Snippets); count++ {
		if request.Snippets[count-1].Refs != nil && count < len(request.Snippets) {
			continue
		}
		var failure *CompileError
		if p, failure = analyse(request, std, count); failure != nil {
			return nil, failure
		}
	}

	files, err := p.render()
	if err != nil {
		return nil, err
	}
	return compile(request, files)
}
