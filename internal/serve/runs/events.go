package runs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Event is a step of a run, with its number in the run, from 1.
type Event struct {
	ledger.Event
	// Code is the whole code of a snippet. Stdout and Stderr are its output.
	Code   string `json:"code,omitempty"`
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Prompt is what a snippet asked a model, shortened. Reply is the whole reply of a model
	// call, if Text is shortened.
	Prompt string `json:"prompt,omitempty"`
	Reply  string `json:"reply,omitempty"`
}

// maxPrompt bounds the prompt of an event, in characters. A prompt may be a part of a context.
const maxPrompt = 4_000

// complete returns an event with the texts of it that are only in this process.
func complete(e ledger.Event) Event {
	event := Event{Event: e}
	if ran := e.Ran; ran != nil && e.Kind == ledger.EventSnippet {
		event.Code, event.Stdout, event.Stderr = ran.Source, ran.Stdout, ran.Stderr
	}
	if e.Call != nil {
		event.Prompt = texts.Truncate(e.Call.Prompt, maxPrompt)
	}
	if r := e.Response; r != nil && len(r.Text) > len(e.Text) {
		event.Reply = r.Text
	}
	return event
}

// eventLog is the file of a run's events, one a line. Its readers wait for lines that come, so
// that each of them gets every event, at its own pace.
type eventLog struct {
	path string

	mu     sync.Mutex
	file   *os.File // nil without a writer
	size   int64    // of whole lines
	count  int64
	failed error
	news   chan struct{} // closed by the next event, and by the end
}

// openEvents opens the log for a run that goes on. A line that a crash has cut is removed.
func openEvents(path string) (*eventLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l := &eventLog{path: path, file: file, news: make(chan struct{})}
	l.count, l.size, err = countLines(file)
	if err == nil {
		err = file.Truncate(l.size)
	}

	if err == nil {
		_, err = file.Seek(l.size, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// countLines returns the number of whole lines and their bytes.
func countLines(r io.Reader) (lines, size int64, err error) {
	buffer := make([]byte, 64<<10)
	for at := int64(0); ; {
		n, err := r.Read(buffer)
		lines += int64(bytes.Count(buffer[:n], []byte{'\n'}))
		if i := bytes.LastIndexByte(buffer[:n], '\n'); i >= 0 {
			size = at + int64(i) + 1
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			return lines, size, nil
		}
		if err != nil {
			return lines, size, err
		}
	}
}

// add appends an event. After an error, it takes no further ones.
func (l *eventLog) add(e ledger.Event) error {
	line, err := json.Marshal(complete(e))

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || l.failed != nil {
		return l.failed
	}
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil {
		l.failed = fmt.Errorf("cannot keep the events of the run: %w", err)
		return l.failed
	}

	l.size += int64(len(line)) + 1
	l.count++
	close(l.news)
	l.news = make(chan struct{})
	return nil
}

// close ends the log: no event comes any more.
func (l *eventLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return l.failed
	}
	err := l.file.Close()
	l.file = nil
	close(l.news)
	return errors.Join(l.failed, err)
}

// known returns the size of the whole lines, and a channel that news closes. Ended says that
// nothing comes any more.
func (l *eventLog) known() (size int64, news <-chan struct{}, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size, l.news, l.file == nil
}

// follow calls take with the number and the line of each event after a number, until the log
// has ended. A call of idle, if it is set, says that there is no further event at the time.
func (l *eventLog) follow(
	ctx context.Context, after int64, take func(n int64, line []byte) error, idle func() error,
) error {
	file, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a run that never began
	}
	if err != nil {
		return err
	}
	defer file.Close()

	read, n := int64(0), int64(0)
	for {
		size, news, ended := l.known()
		lines := bufio.NewReaderSize(io.NewSectionReader(file, read, size-read), 64<<10)
		for read < size {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return fmt.Errorf("cannot read the events of the run: %w", err)
			}
			read += int64(len(line))
			if n++; n <= after {
				continue
			}
			if err := take(n, bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}

		if err := idle(); err != nil {
			return err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pastEvents returns the log of a run that has ended.
func pastEvents(path string) (*eventLog, error) {
	l := &eventLog{path: path}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}

	if err != nil {
		return nil, err
	}
	defer file.Close()
	l.count, l.size, err = countLines(file)
	return l, err
}

// copyEvents begins the log of a fork with the events of its parent, up to the end of a turn of
// the root.
func copyEvents(from, to string, turn int) (err error) {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()

	w := bufio.NewWriter(target)
	for lines := bufio.NewReaderSize(source, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return w.Flush() // the rest of a line comes yet
		}
		var e ledger.Event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		isRoot := e.Node == "0"
		if err == nil && isRoot && e.Turn > turn {
			return w.Flush()
		}
		isEnd := isRoot && e.Kind == ledger.EventRunEnded
		if err == nil && !isEnd {
			_, err = w.Write(line)
		}
		if err != nil {
			return fmt.Errorf("cannot copy the events of the run: %w", err)
		}
	}
}
