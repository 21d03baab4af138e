//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// killedSources are snippets that append values from outside the sandbox to a list, and print the
// list. %d stands for the number of the snippet.
var killedSources = []string{
	`seen.append([%d, time.time()])`,
	`seen.append([%d, str(uuid.uuid4()), random.random()])`,
	`def work(n):
    time.sleep(random.random() / 1000)
    found.append(time.time_ns())
found = []
ts = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for t in ts: t.start()
for t in ts: t.join()
seen.append([%d, *found])`,
	`seen.append([%d, given])`,
	`seen.append([%d, len(seen)])`,
}

// killedClient is a client with a session, and with the answers that the client received.
type killedClient struct {
	name, path string
	known      []string
}

// exec runs a snippet and returns what it printed. The server may be killed during the call.
func (c *killedClient) exec(ctx context.Context, s *serving, source string, given int) (printed string, err error) {
	body, err := json.Marshal(map[string]any{"source": source, "variables": map[string]any{"given": given}})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+c.path+"/exec", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var result struct {
		Status, Stdout string
		Lost           *struct{ Reason string }
	}
	switch err := json.NewDecoder(answer.Body).Decode(&result); {
	case err != nil:
		return "", err
	case answer.StatusCode != http.StatusOK || result.Status != "ok":
		s.Errorf("%s: %s %s: %s", c.name, answer.Status, result.Status, source)
	case result.Lost != nil:
		s.Errorf("%s: something is lost: %s", c.name, result.Lost.Reason)
	}
	return result.Stdout, nil
}

// open opens the session and compares it with the answers. It returns how many of them the session
// lacks.
func (c *killedClient) open(s *serving) (lost int) {
	var opened struct{ ID string }
	s.ask("POST", "/v1/sessions", fmt.Sprintf(`{"name": %q}`, c.name), &opened)
	c.path = "/v1/sessions/" + opened.ID
	text, err := c.exec(s.Context(), s, "import json, random, threading, time, uuid\n"+
		"seen = globals().get('seen', [])\nprint(json.dumps([json.dumps(one) for one in seen]))", 0)
	if err != nil {
		s.Fatal(err)
	}
	var seen []string
	if err := json.Unmarshal([]byte(text), &seen); err != nil {
		s.Fatal(err)
	}

	for i, want := range c.known {
		if i >= len(seen) || seen[i] != want {
			lost++
		}
	}
	if lost > 0 || len(seen) > len(c.known)+1 { // one snippet may have run without an answer
		s.Errorf("%s: %d answers are lost: %q, but %q is there", c.name, lost, c.known, seen)
	}
	c.known = seen
	return lost
}

// work runs snippets until the server is killed.
func (c *killedClient) work(ctx context.Context, s *serving) (answers int) {
	for {
		n := len(c.known)
		source := fmt.Sprintf(killedSources[rand.IntN(len(killedSources))], n) + "\nprint(json.dumps(seen[-1]))"
		text, err := c.exec(ctx, s, source, n)
		if err != nil {
			return answers
		}
		c.known = append(c.known, string(bytes.TrimSpace([]byte(text))))
		answers++
	}
}

// TestAKilledServerLosesNoAnswer kills rlm serve repeatedly while clients use their sessions, and
// compares the sessions with the answers. RLM_KILLS=1000 kills it a thousand times.
func TestAKilledServerLosesNoAnswer(t *testing.T) {
	needSignals(t)
	skip.UnderRace(t) // under the detector, workers need more memory than allowed
	skip.WithoutJail(t)
	kills := 2
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}

	dir := t.TempDir()
	clients := make([]*killedClient, 4)
	answers, lost := 0, 0
	for n := range kills + 1 {
		s := startServing(t, dir)
		if n%50 == 0 { // each list grows
			for i := range clients {
				clients[i] = &killedClient{name: fmt.Sprintf("client-%d-%d", n/50, i)}
			}
		}
		for _, c := range clients {
			lost += c.open(s)
		}

		var group sync.WaitGroup
		counts := make([]int, len(clients))
		for i, c := range clients {
			group.Go(func() { counts[i] = c.work(t.Context(), s) })
		}
		time.Sleep(time.Duration(rand.Int64N(int64(700 * time.Millisecond)))) // any moment
		if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		group.Wait()
		_ = s.cmd.Wait() // it was killed
		for _, count := range counts {
			answers += count
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d kills of rlm serve, %d answers, %d lost", kills, answers, lost)
}
