// Package damage has the words of a check: what of the data that is kept is not what was written,
// what is lost with it, and what was done about it.
package damage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Err is what errors of damaged data are, for [errors.Is].
var Err = errors.New("it is damaged")

// Kind returns an error that is [Err], and itself.
func Kind(text string) error { return kind(text) }

type kind string

// Error is the text.
func (k kind) Error() string { return string(k) }

// Is implements what [errors.Is] asks for.
func (kind) Is(target error) bool { return target == Err }

// Finding is a file or a record that is not what was written.
type Finding struct {
	// What names it: a path in the folder, or a record such as "session sess_x".
	What string `json:"what"`
	// Problem says what is wrong with it.
	Problem string `json:"problem"`
	// Lost says what is lost with it, empty for nothing.
	Lost string `json:"lost,omitempty"`
	// Done says what the repair did, empty for nothing.
	Done string `json:"done,omitempty"`
	// IsNote says that it is no damage.
	IsNote bool `json:"note,omitempty"`
}

// String is the finding as a line.
func (f *Finding) String() string {
	line := f.What + ": " + f.Problem
	if f.Lost != "" {
		line += "; lost: " + f.Lost
	}
	if f.Done != "" {
		line += "; " + f.Done
	}
	return line
}

// Report is the outcome of a check.
type Report struct {
	// Files and Records count what was looked at.
	Files    int       `json:"files"`
	Records  int       `json:"records"`
	Findings []Finding `json:"findings"`
	// Kept is the folder with copies of all that a repair has changed, empty for none.
	Kept string `json:"kept,omitempty"`
}

// Add adds a finding.
func (r *Report) Add(f Finding) { r.Findings = append(r.Findings, f) }

// Join adds what another check has found in a part of the folder.
func (r *Report) Join(part string, other *Report) {
	r.Files += other.Files
	r.Records += other.Records
	for _, f := range other.Findings {
		f.What = filepath.Join(part, f.What)
		r.Add(f)
	}
}

// IsWhole reports whether nothing is damaged.
func (r *Report) IsWhole() bool { return r.Count() == 0 }

// Count returns how many findings are damage.
func (r *Report) Count() (n int) {
	for i := range r.Findings {
		if !r.Findings[i].IsNote {
			n++
		}
	}
	return n
}

// Quarantine is a folder for what a repair takes out of its place. It is made when the first file
// comes, below the folder that is checked. A nil one says that nothing may be changed.
type Quarantine struct{ dir string }

// quarantineFolder is the folder of all repairs.
const quarantineFolder = "quarantine"

// NewQuarantine returns the quarantine of a repair that begins now.
func NewQuarantine(folder string) *Quarantine {
	return &Quarantine{filepath.Join(folder, quarantineFolder, time.Now().UTC().Format("20060102T150405.000Z"))}
}

// Below returns the quarantine for a part of the folder, in the same place.
func (q *Quarantine) Below(part string) *Quarantine {
	if q == nil {
		return nil
	}
	return &Quarantine{filepath.Join(q.dir, part)}
}

// Path returns where a file of the folder goes, and makes the folders above it.
func (q *Quarantine) Path(name string) (string, error) {
	path := filepath.Join(q.dir, name)
	return path, os.MkdirAll(filepath.Dir(path), 0o700)
}

// Take moves a file or a folder of the folder out of its place.
func (q *Quarantine) Take(folder, name string) error {
	to, err := q.Path(name)
	if err != nil {
		return fmt.Errorf("cannot make the quarantine: %w", err)
	}
	return os.Rename(filepath.Join(folder, name), to)
}

// Note adds lines to a file of the quarantine, which says what a repair has changed in a database.
func (q *Quarantine) Note(name string, lines ...string) error {
	path, err := q.Path(name)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(lines, "\n") + "\n")
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// Dir returns the folder of the quarantine, empty if there is nothing in it.
func (q *Quarantine) Dir() string {
	if q == nil {
		return ""
	}
	if _, err := os.Lstat(q.dir); err != nil {
		return ""
	}
	return q.dir
}
