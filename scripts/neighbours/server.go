package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// server is a running rlm serve, with a key for each tenant.
type server struct {
	dir     string
	address string
	keys    [2]string
	cmd     *exec.Cmd
	client  http.Client
}

// replies is the script of the server's model, which no session uses.
const replies = "version: 1\nrules:\n  - reply: hello\n"

func startServer(ctx context.Context, rlm string) (s *server, err error) {
	dir, err := os.MkdirTemp("", "rlm-neighbours-*")
	if err != nil {
		return nil, err
	}
	s = &server{dir: dir, client: http.Client{
		Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 1000},
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()

	for i := range s.keys {
		out, err := exec.CommandContext(ctx, rlm, "keys", "create", fmt.Sprint("tenant", i), "--data", dir).Output()
		if err != nil {
			return s, fmt.Errorf("cannot create a key: %w", err)
		}
		s.keys[i] = strings.TrimSpace(string(out))
	}
	script := filepath.Join(dir, "replies.yaml")
	if err := os.WriteFile(script, []byte(replies), 0o600); err != nil {
		return s, err
	}

	s.cmd = exec.CommandContext(ctx, rlm, "serve", "--listen", "127.0.0.1:0", "--data", dir, "--require-key",
		"--allow-sampled", "--model", "scripted/"+script, "--max-open-sessions", "200")
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	notes, err := s.cmd.StderrPipe()
	if err != nil {
		return s, err
	}
	if err := s.cmd.Start(); err != nil {
		return s, err
	}
	lines := bufio.NewScanner(notes)
	for s.address == "" && lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "serves "); ok {
			s.address = address
		}
	}
	if s.address == "" {
		return s, errors.New("the server did not start")
	}

	go func() { _, _ = io.Copy(os.Stderr, notes) }()
	return s, nil
}

// stop ends the server and removes its folder.
func (s *server) stop() error {
	var err error
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM) // fails if the server has ended
		err = s.cmd.Wait()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// answer is a session's answer to a snippet, or the reason why there is none.
type answer struct {
	Status string `json:"status"`
	Stdout string `json:"stdout"`
	Limit  string `json:"limit"`
	Lost   *struct {
		Snippets []int  `json:"snippets"`
		Reason   string `json:"reason"`
	} `json:"lost"`
	Detail string `json:"detail"`
	ID     string `json:"id"`
	code   int
}

// do sends a request below /v1/sessions.
func (s *server) do(ctx context.Context, method, path, key string, body any) (a answer, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, method, s.address+"/sessions"+path, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()

	a.code = response.StatusCode
	if a.code == http.StatusNoContent {
		return a, nil
	}
	err = json.NewDecoder(response.Body).Decode(&a)
	return a, err
}

// open makes a session.
func (s *server) open(ctx context.Context, key string, body any) (id string, err error) {
	a, err := s.do(ctx, http.MethodPost, "", key, body)
	if err == nil && a.code != http.StatusOK {
		err = fmt.Errorf("cannot open a session: %d %s", a.code, a.Detail)
	}
	return a.ID, err
}

// exec runs a snippet in a session.
func (s *server) exec(ctx context.Context, key, id, source string) (answer, error) {
	return s.do(ctx, http.MethodPost, "/"+id+"/exec", key, map[string]string{"source": source, "language": "python"})
}
