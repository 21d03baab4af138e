// Package damage defines the results of a check: the stored data that differs from the data
// written, the resulting losses, and the actions of a repair.
package damage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Err matches all errors about damaged data, for [errors.Is].
var Err = errors.New("it is damaged")

// Kind returns an error that matches both [Err] and itself.
func Kind(text string) error { return kind(text) }

type kind string

// Error returns the message.
func (k kind) Error() string { return string(k) }

// Is implements the method that [errors.Is] looks for.
func (kind) Is(target error) bool { return target == Err }

// Finding is a file or record that differs from what was written.
type Finding struct {
	// What names the file or record: a path in the folder, or a phrase such as "session sess_x".
	What string `json:"what"`
	// Problem describes the damage.
	Problem string `json:"problem"`
	// Lost describes what is lost with the file or record, or is empty.
	Lost string `json:"lost,omitempty"`
	// Done describes what the repair did, or is empty.
	Done string `json:"done,omitempty"`
	// IsNote marks a finding that is not damage.
	IsNote bool `json:"note,omitempty"`
}

// String returns the finding as a line of text.
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
	// Files and Records count the checked files and records.
	Files    int       `json:"files"`
	Records  int       `json:"records"`
	Findings []Finding `json:"findings"`
	// Kept is the folder with copies of everything that a repair changed, or empty.
	Kept string `json:"kept,omitempty"`
}

// Add adds a finding.
func (r *Report) Add(f Finding) { r.Findings = append(r.Findings, f) }

// Join adds the findings of another check of a part of the folder.
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

// Count returns the number of findings that are damage.
func (r *Report) Count() (n int) {
	for i := range r.Findings {
		if !r.Findings[i].IsNote {
			n++
		}
	}
	return n
}

// Quarantine is a folder for the files that a repair removes. It is created below the checked
// folder when the first file arrives. A nil Quarantine means that the check must not change
// anything.
type Quarantine struct{ dir string }

// quarantineFolder is the parent folder of the quarantines of all repairs.
const quarantineFolder = "quarantine"

// NewQuarantine returns the quarantine of a repair that starts now.
func NewQuarantine(folder string) *Quarantine {
	return &Quarantine{filepath.Join(folder, quarantineFolder, time.Now().UTC().Format("20060102T150405.000Z"))}
}

// Below returns the subfolder of the quarantine for a subfolder of the checked folder.
func (q *Quarantine) Below(part string) *Quarantine {
	if q == nil {
		return nil
	}
	return &Quarantine{filepath.Join(q.dir, part)}
}

// Path returns the destination of a file in the checked folder, and creates the folders above it.
func (q *Quarantine) Path(name string) (string, error) {
	path := filepath.Join(q.dir, name)
	return path, os.MkdirAll(filepath.Dir(path), 0o700)
}

// Take moves a file or folder into the quarantine.
func (q *Quarantine) Take(folder, name string) error {
	to, err := q.Path(name)
	if err != nil {
		return fmt.Errorf("cannot make the quarantine: %w", err)
	}
	return os.Rename(filepath.Join(folder, name), to)
}

// Note appends lines to a file in the quarantine that describes a repair's changes to a database.
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

// Dir returns the folder of the quarantine, or an empty string if the quarantine is empty.
func (q *Quarantine) Dir() string {
	if q == nil {
		return ""
	}
	if _, err := os.Lstat(q.dir); err != nil {
		return ""
	}
	return q.dir
}
