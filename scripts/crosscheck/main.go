// Command crosscheck type-checks the module's packages and their tests for other systems:
//
//	scripts/run.sh crosscheck darwin/arm64 windows/amd64
//
// It finds the errors that `go build` and `go vet` would report, except for linker errors. It does
// not compile dependencies, so it takes seconds, while a first build for a system takes minutes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

// pkg holds the required fields of the output of `go list -json`.
type pkg struct {
	Dir, ImportPath, Name string
	GoFiles               []string
	ImportMap             map[string]string
	Standard              bool
	Module                *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Err string }
}

func main() {
	var group errgroup.Group
	for _, system := range os.Args[1:] {
		group.Go(func() error { return checkFor(system) })
	}
	if err := group.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "crosscheck:", err)
		os.Exit(1)
	}
}

// checkFor type-checks all packages for a system such as darwin/arm64.
func checkFor(system string) error {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return fmt.Errorf("%q: write a system like linux/amd64", system)
	}

	packages, err := list(goos, goarch)
	if err != nil {
		return err
	}
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	sizes := types.SizesFor("gc", goarch)
	for _, p := range packages {
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // a test's generated main
			continue
		}
		if known[p.ImportPath], err = check(p, known, sizes); err != nil {
			return fmt.Errorf("%s: %s: %w", system, p.ImportPath, err)
		}
	}
	return nil
}

// list returns the module's packages, their tests, and all packages that these import. Each package
// comes after its imports.
func list(goos, goarch string) ([]*pkg, error) {
	//nolint:noctx // ends with this program
	command := exec.Command("go", "list", "-deps", "-test",
		"-json=Dir,ImportPath,Name,GoFiles,ImportMap,Standard,Module,Error", "./...")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}

	var packages []*pkg
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, err
		case p.Error != nil:
			return nil, errors.New(p.Error.Err)
		}
		packages = append(packages, &p)
	}
}

// check type-checks one package. It skips function bodies outside this module.
func check(
	p *pkg, known map[string]*types.Package, sizes types.Sizes,
) (*types.Package, error) {
	isOurs := p.Module != nil && p.Module.Main
	fset := token.NewFileSet()
	files := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		var err error
		path := filepath.Join(p.Dir, name)
		if files[i], err = parser.ParseFile(fset, path, nil, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}

	config := types.Config{
		IgnoreFuncBodies: !isOurs,
		Sizes:            sizes,
		Importer: importer(func(path string) (*types.Package, error) {
			if mapped, ok := p.ImportMap[path]; ok {
				path = mapped
			}
			if found := known[path]; found != nil {
				return found, nil
			}
			return nil, fmt.Errorf("package %s is not listed", path)
		}),
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	return config.Check(p.ImportPath, fset, files, nil)
}

// importer adapts a function to [types.Importer].
type importer func(path string) (*types.Package, error)

func (i importer) Import(path string) (*types.Package, error) { return i(path) }
