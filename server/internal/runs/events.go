package runs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Event is a step of a run, with its number in the run, from 1.
type Event struct {
	ledger.Event
	// Code is the whole code of a snippet. Stdout and Stderr are its output.
	Code   string `json:"code,omitempty"`
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Prompt is a snippet's prompt for a model, shortened. Reply is the complete reply of a model
	// call, if Text is shortened.
	Prompt string `json:"prompt,omitempty"`
	Reply  string `json:"reply,omitempty"`
	// Damaged means that the event replaces events that are damaged on disk.
	Damaged bool `json:"damaged,omitempty"`
}

// maxPrompt is the maximum length of an event's prompt, in characters. A prompt may be a part of a
// context.
const maxPrompt = 4_000

// complete returns an event with the texts that exist only in this process.
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

// eventLog is the file of a run's events. Its readers wait for new lines, so that each one receives
// every event, at its own pace. See eventlines.go for the format.
type eventLog struct {
	path string

	mu     sync.Mutex
	file   *os.File // nil without a writer
	size   int64    // size of the complete lines
	count  int64
	failed error
	news   chan struct{} // closed at the next event, and at the end
}

// openEvents opens the log for a continued run. It removes a line that a crash cut off. If the log
// is missing, or of an earlier version, it creates a new one.
func openEvents(path string) (*eventLog, error) {
	count, size, err := renewEvents(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}

	l := &eventLog{path: path, file: file, news: make(chan struct{}), count: count, size: size}

	if err = file.Truncate(l.size); err == nil {
		err = l.writeHead()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// renewEvents returns the number of events of a log, and the size of its complete lines. It
// rewrites a log without a head.
func renewEvents(path string) (count, size int64, err error) {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	case err == nil:
		defer file.Close()
		var s eventScan
		s, size, err = scanEvents(file, func(int64, []byte) error { return nil })
		if err == nil && s.isHead {
			return max(s.last, s.count), size, nil
		}
	}
	if err != nil {
		return 0, 0, err
	}

	return rewrite(path, file)
}

// rewrite replaces a log with a new one that contains the intact events of from, if it is not nil.
// It returns the number of the last event, and the size of all lines. A crash leaves the old log
// unchanged.
func rewrite(path string, from *os.File) (last, size int64, err error) {
	fresh, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.Remove(fresh.Name()) }()
	last, size, err = renumber(from, fresh)
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	return last, size, err
}

// add appends an event. After an error, it accepts no more events.
func (l *eventLog) add(e ledger.Event) error {
	event, err := json.Marshal(complete(e))

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || l.failed != nil {
		return l.failed
	}

	line := encodeLine(l.count+1, event)
	if err == nil {
		if _, err = l.file.WriteAt(line, l.size); err != nil {
			err = errors.Join(err, l.file.Truncate(l.size))
		}
	}
	if err == nil {
		l.size += int64(len(line))
		l.count++
		err = l.writeHead()
	}
	if err != nil {
		l.failed = fmt.Errorf("cannot keep the events of the run: %w", err)
		return l.failed
	}

	close(l.news)
	l.news = make(chan struct{})
	return nil
}

// writeHead writes the head, with the number of events.
func (l *eventLog) writeHead() error {
	_, err := l.file.WriteAt(encodeHead(l.count), 0)
	return err
}

// close ends the log: no more events follow.
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

// known returns the size of the complete lines, the number of events, and a channel that is closed
// when there is news. Ended means that no more events follow.
func (l *eventLog) known() (size, count int64, news <-chan struct{}, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size, l.count, l.news, l.file == nil
}

// follow calls take with the number and the JSON of each event that follows the event with the
// given number, until the log has ended. It calls idle, if set, when there are no more events yet.
// Damaged events are reported as one event.
func (l *eventLog) follow(
	ctx context.Context, after int64, take func(n int64, event []byte) error, idle func() error,
) error {
	file, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		if l.count == 0 {
			return nil // a run that never began
		}
		return take(max(after+1, 1), damagedEvents(1, 1))
	}
	if err != nil {
		return err
	}
	defer file.Close()

	read, scan := int64(0), eventScan{count: -1}
	emit := func(n int64, event []byte) error {
		if n <= after {
			return nil
		}
		return take(n, event)
	}
	for {
		size, count, news, ended := l.known()
		lines := bufio.NewReaderSize(io.NewSectionReader(file, read, size-read), 64<<10)
		for read < size {
			line, n, err := readLine(lines)
			if err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("cannot read the events of the run: %w", err)
			}
			read += n
			if err := scan.take(line, emit); err != nil {
				return err
			}
			if n == 0 {
				break // the file was truncated
			}
		}
		if err := scan.finish(count, emit); err != nil || ended {
			return err
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

// pastEvents returns the log of a run that has ended. Its number of events is unknown. IsKept means
// that a log must exist.
func pastEvents(path string, isKept bool) (*eventLog, error) {
	l := &eventLog{path: path, count: -1}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !isKept {
			l.count = 0
		}
		return l, nil
	case err != nil:
		return nil, err
	}

	l.size = info.Size()
	return l, nil
}

// beginEvents begins the log of a run. The log of a fork starts with the events of its parent, up
// to the end of a turn of the root.
func (m *Manager) beginEvents(r *Record, w io.Writer) error {
	var source *os.File
	if r.Spec.Parent != "" {
		var err error
		if source, err = os.Open(m.eventsFile(r.Spec.Parent)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			defer source.Close()
		}
	}
	return copyEvents(source, w, r.Spec.ParentTurn)
}

// errCopied ends a copy of events.
var errCopied = errors.New("all events were copied")

// copyEvents copies the events of source, if it is not nil, up to the end of a turn of the root.
func copyEvents(source *os.File, target io.Writer, turn int) error {
	count := int64(0)
	each := func(take func(event []byte) error) error {
		return eachEvent(source, func(_ int64, event []byte) error {
			var e Event
			if err := json.Unmarshal(event, &e); err != nil {
				return err
			}
			isRoot := e.Node == "0" && !e.Damaged
			switch {
			case isRoot && e.Turn > turn:
				return errCopied
			case isRoot && e.Kind == ledger.EventRunEnded:
				return nil
			}
			return take(event)
		})
	}

	err := each(func([]byte) error { count++; return nil })

	w, n := bufio.NewWriter(target), int64(0)
	_, failed := w.Write(encodeHead(count))
	if err = errors.Join(err, failed); err == nil {
		err = each(func(event []byte) error {
			if n++; n > count { // an event that has just arrived
				return errCopied
			}
			_, err := w.Write(encodeLine(n, event))
			return err
		})
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		return fmt.Errorf("cannot copy the events of the run: %w", err)
	}
	return nil
}

// eachEvent calls take with each event of source, if it is not nil, until take returns errCopied.
func eachEvent(source *os.File, take func(n int64, event []byte) error) error {
	if source == nil {
		return nil
	}
	if _, err := source.Seek(0, io.SeekStart); err != nil {
		return err
	}

	s, _, err := scanEvents(source, take)
	if err == nil {
		err = s.finish(-1, take)
	}
	if errors.Is(err, errCopied) {
		return nil
	}
	return err
}

// renumber copies the events of source, if it is not nil, with their numbers to a log with a head.
// It returns the number of the last event, and the size of all lines.
func renumber(source *os.File, target io.Writer) (last, size int64, err error) {
	err = eachEvent(source, func(n int64, _ []byte) error { last = n; return nil })
	w := bufio.NewWriter(target)
	_, failed := w.Write(encodeHead(last))
	size = int64(headLength)

	if err = errors.Join(err, failed); err == nil {
		err = eachEvent(source, func(n int64, event []byte) error {
			var e Event
			if err := json.Unmarshal(event, &e); err != nil || e.Damaged {
				return nil //nolint:nilerr // its number is missing then
			}
			line := encodeLine(n, event)
			size += int64(len(line))
			_, err := w.Write(line)
			return err
		})
	}
	return last, size, errors.Join(err, w.Flush())
}
