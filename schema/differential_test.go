package schema

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestPythonRebuildsCoercedValues checks values against the schemas of Python types and sends
// the results back to Python: each value that passes must become an instance of the type.
func TestPythonRebuildsCoercedValues(t *testing.T) {
	python := os.Getenv("RLM_PYTHON")
	if python == "" {
		if os.Getenv("RLM_REQUIRE_PYTHON") != "" {
			t.Fatal("RLM_PYTHON names no CPython")
		}
		t.Skip("RLM_PYTHON names no CPython")
	}

	cmd := exec.CommandContext(t.Context(), python, "-I", "testdata/differential.py",
		"../internal/python/pykernel/guest")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	answers, err := checkAll(lines)
	if err != nil {
		t.Errorf("%v\n%s", err, stderr.String())
	}
	if _, err := io.WriteString(stdin, answers); err != nil {
		t.Errorf("cannot answer: %v", err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("Python cannot rebuild what the host took: %v\n%s", err, stderr.String())
	}
	const file = "testdata/differential.txt"
	if *update {
		if err := os.WriteFile(file, rest, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(rest, want) {
		t.Errorf("not as in %s:\n%s", file, rest)
	}
}

// checkAll checks the values on each line, and returns one line of results for each of these lines.
func checkAll(lines *bufio.Reader) (string, error) {
	var answers strings.Builder
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return "", fmt.Errorf("cannot read a type: %w", err)
		}
		if line == "\n" {
			return answers.String(), nil
		}

		var one struct {
			Name   string
			Schema json.RawMessage
			Values []json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return "", err
		}

		c, err := Parse(one.Schema)
		if err != nil {
			return "", fmt.Errorf("%s: %w", one.Name, err)
		}

		var results []any
		for _, value := range one.Values {
			coerced, violations, err := c.Check(value)
			switch {
			case err != nil:
				return "", fmt.Errorf("%s: %w", one.Name, err)
			case len(violations) > 0:
				results = append(results, nil)
			default:
				results = append(results, map[string]any{"value": coerced})
			}
		}

		text, err := json.Marshal(results)
		if err != nil {
			return "", err
		}

		answers.Write(append(text, '\n'))
	}
}
