//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

const (
	// killsVariable is the environment variable with the number of random moments to try, in
	// addition to all moments around writes. If it is unset, the test tries a few moments of both
	// kinds.
	killsVariable = "RLM_KILLS"
	// killsFileVariable names a file with the moments tried earlier, with which an interrupted test
	// can continue.
	killsFileVariable = "RLM_KILLS_FILE"
)

// killMoment is a moment at which a run was killed, with the result.
type killMoment struct {
	Random bool `json:"random"`
	Stage  int  `json:"stage"`
	// At is the number of a moment around a write, or of a random one.
	At       int  `json:"at"`
	Killed   bool `json:"killed"`
	Lost     int  `json:"lost"`
	Twice    int  `json:"twice"`
	InFlight int  `json:"in_flight"`
}

func (m *killMoment) name() string {
	kind := "write"
	if m.Random {
		kind = "random"
	}
	return fmt.Sprintf("%s %d of stage %d", kind, m.At, m.Stage)
}

// killPlan tries moments, several of them concurrently.
type killPlan struct {
	calls  int                   // model calls in a run that is not killed
	lasted [stages]time.Duration // the maximum, measured with the usual number of concurrent runs

	mu    sync.Mutex
	tried map[string]killMoment
	file  *os.File // receives each moment, nil without a file
	begun time.Time
	now   int // moments that this process tried
}

// TestAKilledRunLosesNothing kills a run around writes to its store and at random moments, and
// continues it. RLM_KILLS=500 tries 500 random moments, and all moments around writes.
func TestAKilledRunLosesNothing(t *testing.T) {
	skip.Short(t, "it starts many processes")
	needCache(t)
	random, every, atOnce := 3, 20, 1
	if text := os.Getenv(killsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		random, every, atOnce = n, 1, 4
	}

	p := &killPlan{tried: map[string]killMoment{}, begun: time.Now()}
	p.open(t)
	p.measure(t, atOnce)
	for stage := range stages { // until the call waits, during the decision, and after it
		for at, more := 1, true; more; at += every * atOnce {
			wave := make([]killMoment, atOnce)
			for i := range wave {
				wave[i] = killMoment{Stage: stage, At: at + i*every}
			}
			for _, tried := range p.try(t, wave) {
				more = more && tried.Killed
			}
		}
	}
	moments := make([]killMoment, random)
	for n := range moments {
		moments[n] = killMoment{Random: true, Stage: n % stages, At: n}
	}
	p.try(t, moments)
	p.report(t)
}

// open reads the moments that an earlier process tried for the same test.
func (p *killPlan) open(t *testing.T) {
	t.Helper()
	path := os.Getenv(killsFileVariable)
	if path == "" {
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(code)
	head := hex.EncodeToString(sum[:])

	known, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if p.file, err = os.Create(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.file.Close() })
	p.write(t, head)

	decoder := json.NewDecoder(bytes.NewReader(known))
	var was string
	if decoder.Decode(&was) != nil || was != head {
		return // another program wrote the file
	}
	for {
		var m killMoment
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break // the last line may be incomplete
		} else if err != nil {
			t.Fatal(err)
		}
		p.tried[m.name()] = m
		p.write(t, m)
	}
	t.Logf("%d moments were tried before", len(p.tried))
}

// write adds a line to the file.
func (p *killPlan) write(t *testing.T, line any) {
	t.Helper()
	if p.file == nil {
		return
	}
	if err := json.NewEncoder(p.file).Encode(line); err != nil {
		t.Error(err)
	}
}

// measure completes runs without killing them, to count their calls and to time their stages.
func (p *killPlan) measure(t *testing.T, atOnce int) {
	t.Helper()
	t.Run("measure", func(t *testing.T) {
		for range atOnce {
			t.Run("run", func(t *testing.T) {
				t.Parallel()
				model := &countedModel{asked: map[string]int{}}
				server := llmtest.Start(model.reply)
				defer server.Close()
				whole := newKilledRun(t)
				lasted, calls := whole.measure(server), model.sum()
				if asked, sent := whole.kept(); asked != calls || sent != 1 || whole.sent() != 1 {
					t.Errorf("%d and %d calls are kept, but %d and %d were made", asked, sent, calls, whole.sent())
				}

				p.mu.Lock()
				defer p.mu.Unlock()
				p.calls = calls
				for i := range lasted {
					p.lasted[i] = max(p.lasted[i], lasted[i])
				}
			})
		}
	})
	if t.Failed() || p.calls == 0 {
		t.Fatal("a run that nobody kills has failed")
	}
}

// maxAttempts bounds how often the test chooses another random moment because a moment was after
// the run's end.
const maxAttempts = 20

// try tries the moments that have not been tried yet, and returns the results of all moments.
func (p *killPlan) try(t *testing.T, moments []killMoment) []killMoment {
	t.Helper()
	t.Run("moments", func(t *testing.T) {
		for _, m := range moments {
			if _, ok := p.tried[m.name()]; ok {
				continue
			}
			t.Run(m.name(), func(t *testing.T) {
				t.Parallel()
				tried := newKilledRun(t).tryOnce(m, p.calls, p.lasted[m.Stage])
				for n := 1; m.Random && !tried.Killed && n < maxAttempts; n++ { // the kill came too late
					tried = newKilledRun(t).tryOnce(m, p.calls, p.lasted[m.Stage])
				}
				if !t.Failed() {
					p.add(t, tried)
				}
			})
		}
	})
	if t.Failed() {
		t.FailNow()
	}

	for i := range moments {
		moments[i] = p.tried[moments[i].name()]
	}
	return moments
}

// add counts a moment.
func (p *killPlan) add(t *testing.T, m killMoment) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tried[m.name()] = m
	p.write(t, m)
	if p.now++; p.now%20 == 0 {
		t.Logf("%d moments in %v", len(p.tried), time.Since(p.begun).Round(time.Second))
	}
}

// report prints the table.
func (p *killPlan) report(t *testing.T) {
	t.Helper()
	var killed, lost, twice, inFlight [2]int
	for _, m := range p.tried {
		row := 0
		if m.Random {
			row = 1
		}
		if m.Killed {
			killed[row]++
		}
		lost[row] += m.Lost
		twice[row] += m.Twice
		inFlight[row] += m.InFlight
	}

	t.Logf("a run of %d calls of models and one of a tool\n\n"+
		"| killed | moments | lost | paid twice | in flight |\n| --- | --- | --- | --- | --- |\n"+
		"| around a write | %d | %d | %d | %d |\n| at random | %d | %d | %d | %d |",
		p.calls, killed[0], lost[0], twice[0], inFlight[0], killed[1], lost[1], twice[1], inFlight[1])
	if killed[0] == 0 || killed[1] == 0 || lost[0]+lost[1] > 0 {
		t.Error("answers that were kept were asked for again, or nothing was killed")
	}
}

// tryOnce kills a run at a moment and continues it. lasted is the duration of the stage.
func (d *killedRun) tryOnce(m killMoment, calls int, lasted time.Duration) killMoment {
	d.t.Helper()
	model := &countedModel{asked: map[string]int{}}
	server := llmtest.Start(model.reply)
	defer server.Close()

	at, kill := m.At, func(*exec.Cmd) {}
	if m.Random {
		after := time.Duration(rand.Int64N(int64(lasted)))
		at, kill = 0, func(cmd *exec.Cmd) {
			time.Sleep(after)
			_ = cmd.Process.Kill()
		}
	}
	if m.Killed = d.kill(server, m.Stage, kill, at); !m.Killed {
		return m
	}

	// The run continues with another server, because requests of the killed process may still
	// arrive.
	later := &countedModel{asked: map[string]int{}}
	laterServer := llmtest.Start(later.reply)
	defer laterServer.Close()
	firstSent := d.sent()
	kept, keptSent := d.kept()
	d.finish(laterServer)
	server.Close()
	first, again, againSent := model.sum(), later.sum(), d.sent()-firstSent
	m.Lost = max(0, again-(calls-kept)) + max(0, againSent-(1-keptSent))
	m.Twice = first + again - calls + firstSent + againSent - 1
	m.InFlight = first - kept + firstSent - keptSent
	if again != calls-kept || againSent != 1-keptSent {
		d.t.Errorf("%s: %d and %d calls were kept of %d and %d, then %d and %d were made",
			m.name(), kept, keptSent, first, firstSent, again, againSent)
	}
	return m
}
