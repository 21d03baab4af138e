package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// meter shows the progress of writing. On a terminal, it redraws one line; elsewhere, it prints a
// line for every tenth.
type meter struct {
	out      io.Writer
	terminal bool
	total    int64
	start    time.Time
	shown    time.Time
	tenths   int64
}

func newMeter(out io.Writer, total int64) *meter {
	f, isFile := out.(*os.File)
	return &meter{
		out:      out,
		terminal: isFile && isTerminal(f),
		total:    total,
		start:    time.Now(),
	}
}

// isTerminal reports whether f is a character device. It mistakes /dev/null for a terminal, which
// is harmless.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// update shows the progress after the given number of written bytes.
func (m *meter) update(done int64) {
	now := time.Now()
	if m.terminal {
		if done == m.total || now.Sub(m.shown) > 100*time.Millisecond {
			m.shown = now
			fmt.Fprintf(m.out, "\r%s\x1b[K", m.line(done, now))
		}

		if done == m.total {
			fmt.Fprintln(m.out)
		}
		return
	}

	if tenths := 10 * (done >> 10) / max(m.total>>10, 1); tenths > m.tenths || done == m.total {
		m.tenths = tenths
		fmt.Fprintln(m.out, m.line(done, now))
	}
}

// line returns the line to show.
func (m *meter) line(done int64, now time.Time) string {
	speed := float64(done) / 1e6 / max(now.Sub(m.start).Seconds(), 1e-6)
	percent := 100 * float64(done) / float64(m.total)
	return fmt.Sprintf("corpus: %3.0f%%  %.0f of %.0f MB  %.0f MB/s",
		percent, float64(done)/1e6, float64(m.total)/1e6, speed)
}
