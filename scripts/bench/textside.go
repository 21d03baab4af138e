package main

import (
	"bufio"
	_ "embed" // the Python code that measures
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

//go:embed texts.py
var measureText string

// textSide is one way to hold a text.
type textSide struct {
	name    string
	measure func(operation string, seconds float64) (textTime, error)
	peak    int64 // bytes of memory, if known
}

// textTime contains the duration of an operation, in seconds, and the type of its result. If the
// memory was not sufficient, Took is 0, and Type is the exception.
type textTime struct {
	Took float64 `json:"took"`
	Type string  `json:"type"`
}

// isLike reports whether two sides did the same. A list that does not fit into memory is a lazy
// sequence, which takes no time to make, so it is not comparable.
func (t textTime) isLike(other textTime) bool {
	return t.Took > 0 && other.Took > 0 && t.Type == other.Type
}

func (t textTime) exceeds(other textTime) bool {
	return t.isLike(other) && t.Took > textReach*other.Took+textSlack
}

func (t textTime) ratio(other textTime) string {
	if !t.isLike(other) {
		return "-"
	}
	return fmt.Sprintf("%.3g ×", t.Took/other.Took)
}

func (t textTime) String() string {
	switch {
	case t.Type == "":
		return "-"
	case t.Took == 0:
		return t.Type
	case t.Type == "Parts":
		return "lazy"
	}
	d := time.Duration(t.Took * float64(time.Second))
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// textBox is a sandbox with a text, and the name of the variable that contains the text after a
// snippet.
type textBox struct {
	name              string
	tier              tiers.Tier
	text              *bigtext.Text
	memory            int64
	variable, prepare string
}

const (
	isStr     = "assert isinstance(context, str)"
	copyToStr = `plain = "".join(context.chunks(1 << 20)); assert type(plain) is str`
)

// openTextSide opens a sandbox. The caller must call stop.
func (b *bench) openTextSide(of textBox) (side *textSide, stop func(), err error) {
	if err := of.tier.Probe(b.ctx); err != nil {
		return nil, nil, err
	}
	box, err := of.tier.Open(b.ctx, tiers.Config{
		Inputs: []tiers.Input{{Name: of.text.Name(), Text: of.text}},
		Limits: tiers.Limits{Memory: of.memory, Wall: time.Hour},
	})
	if err != nil {
		return nil, nil, err
	}
	stop = func() { _ = box.Close() } // nothing depends on the error

	side = &textSide{name: of.name}
	run := func(source string) (tiers.Result, error) {
		r, err := box.Run(b.ctx, tiers.Job{Source: source})
		side.peak = max(side.peak, r.Usage.PeakMemory)
		if err == nil && r.Status != tiers.StatusOK && r.Limit != tiers.LimitMemory {
			err = fmt.Errorf("%s %s %+v", r.Status, r.Limit, r.Exception)
		}
		return r, err
	}
	side.measure = func(operation string, seconds float64) (took textTime, err error) {
		r, err := run(fmt.Sprintf("%s\nprint(json.dumps(measure(%q, %s, %g)))",
			measureText, operation, of.variable, seconds))
		switch {
		case err != nil:
			return textTime{}, err
		case r.Limit == tiers.LimitMemory:
			return textTime{Type: "MemoryError"}, nil
		}
		err = json.Unmarshal([]byte(r.Stdout), &took)
		return took, err
	}

	r, err := run(of.prepare)
	if err == nil && r.Status != tiers.StatusOK {
		err = fmt.Errorf("a text of %d MiB does not fit", of.text.Size()>>20)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	return side, stop, nil
}

// startNative starts a native CPython that reads the text. It may use memory bytes in addition to
// the text.
func (b *bench) startNative(memory int64) (side *textSide, stop func(), err error) {
	cmd := exec.CommandContext(b.ctx, b.python, "-I", "-X", "utf8", "-c", measureText,
		b.texts, strconv.FormatInt(memory, 10))
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}

	answers := bufio.NewReader(from)
	measure := func(operation string, seconds float64) (took textTime, err error) {
		request, err := json.Marshal([]any{operation, seconds})
		if err != nil {
			return textTime{}, err
		}
		_, err = to.Write(append(request, '\n'))
		if err != nil {
			return textTime{}, err
		}
		line, err := answers.ReadBytes('\n')
		if err != nil {
			return textTime{}, fmt.Errorf("the native CPython ended: %w", err)
		}
		err = json.Unmarshal(line, &took)
		return took, err
	}
	stop = func() {
		_ = to.Close() // the process ends at the end of its input
		_ = cmd.Wait() // its result no longer matters
	}
	return &textSide{name: "CPython", measure: measure}, stop, nil
}
