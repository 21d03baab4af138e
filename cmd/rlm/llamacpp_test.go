package main

import (
	"bufio"
	"bytes"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// llamaCPP is llama.cpp's server with a real model, in a process that can be killed.
type llamaCPP struct {
	t       *testing.T
	python  string
	weights []string // the path of the weights; empty for SmolLM2
	address string
	process *exec.Cmd
}

// startLlamaCPP starts the server on a free port.
func startLlamaCPP(t *testing.T, python string, weights ...string) *llamaCPP {
	t.Helper()
	s := &llamaCPP{t: t, python: python, weights: weights, address: "http://127.0.0.1:0"}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts a process at the server's address and returns when it has loaded the model.
func (s *llamaCPP) start() {
	at, err := url.Parse(s.address)
	if err != nil {
		s.t.Errorf("cannot parse the address %q: %v", s.address, err)
		return
	}
	script := filepath.Join("..", "..", "scripts", "smollm", "serve.py")
	s.process = exec.CommandContext(s.t.Context(), s.python, append([]string{script, at.Port()}, s.weights...)...)
	if _, err := s.process.StdinPipe(); err != nil { // the server ends when this process closes the pipe
		s.t.Errorf("cannot start the server: %v", err)
		return
	}

	var stderr bytes.Buffer
	s.process.Stderr = &stderr
	stdout, err := s.process.StdoutPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		s.t.Errorf("cannot start the server: %v", err)
		return
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_, _ = io.Copy(io.Discard, stdout)
		_ = s.process.Wait()
		s.t.Errorf("the server has not started: %v\n%s", err, &stderr)
		return
	}
	s.address = strings.TrimSpace(line)
}

// kill ends the process immediately.
func (s *llamaCPP) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}
