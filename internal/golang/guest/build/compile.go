package build

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// compile runs the compiler and linker in a separate folder.
func compile(request *Request, files map[string]string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the jail's folder disappears with the jail
	files["importcfg"] = request.importConfig()
	args := []string{
		"-p", "main", "-complete", "-pack", "-importcfg", "importcfg", "-trimpath", dir, "-o",
		"main.a",
	}

	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
		if path.Ext(name) == ".go" {
			args = append(args, name)
		}
	}

	failure := runTool(dir, filepath.Join(request.Toolchain.Tools, "compile"), args...)
	if failure != nil {
		return nil, failure
	}
	failure = runTool(
		dir, filepath.Join(request.Toolchain.Tools, "link"),
		"-s", "-w", "-buildmode=exe", "-importcfg", "importcfg", "-o", "main", "main.a",
	)

	if failure != nil {
		return nil, failure
	}
	return os.ReadFile(filepath.Join(dir, "main"))
}

// place matches the folder in a compiler's messages.
var place = regexp.MustCompile(`(?m)^(\./|/tmp/[0-9]+/)`)

// runTool runs a tool. If it fails, its output becomes the error.
func runTool(dir, tool string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.Command(tool, args...) //nolint:noctx // the jail ends it
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	cmd.Env = []string{"HOME=/tmp", "TMPDIR=/tmp", "PATH=", "CGO_ENABLED=0"}
	err := cmd.Run()
	if err == nil {
		return nil
	}

	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
		return failed(
			"CompileError",
			fmt.Sprintf(
				"the %s was killed: it needs too much memory for this", filepath.Base(tool),
			),
		)
	}

	text := suffix.ReplaceAllString(place.ReplaceAllString(said.String(), ""), "")
	if text = strings.TrimSpace(text); text == "" {
		text = fmt.Sprintf("the %s ended: %v", filepath.Base(tool), err)
	}
	return failed("CompileError", strings.Split(text, "\n")...)
}
