package dbfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/keep/damage"
)

// Checked is the outcome of Check.
type Checked struct {
	*damage.Report
	Found *Findings
}

// Check looks for damage in a database, which this process holds exclusively, and reports the
// damage under a name. The function create creates an empty database with the tables. If q is not
// nil, Check repairs a damaged database: it copies the damaged file into the quarantine, and writes
// a new file with the intact rows.
func Check(path string, q *damage.Quarantine, name string, create func(path string) error) (*Checked, error) {
	if err := finishReplace(path); err != nil {
		return nil, err
	}
	place := "" // a folder for temporary files
	if q != nil {
		place = filepath.Dir(path)
	}

	temp, err := os.MkdirTemp(place, ".new-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }() // leftovers are swept like other temporary files
	fresh := filepath.Join(temp, filepath.Base(path))
	if err := create(fresh); err != nil {
		return nil, err
	}

	found, err := look(path, fresh, Find)
	if err == nil && q != nil && !found.IsWhole() {
		found, err = look(path, fresh, Salvage)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look through %s: %w", path, err)
	}

	checked := &Checked{&damage.Report{Files: 1}, found}
	if found.IsWhole() {
		return checked, nil
	}
	f := damage.Finding{What: name, Problem: found.String()}
	if found.IsEmpty() {
		f.Lost = "all rows"
	}

	if q != nil {
		keep, err := q.Path(name)
		if err == nil {
			err = Replace(path, fresh, filepath.Dir(keep))
		}
		if err != nil {
			return nil, err
		}
		f.Done = fmt.Sprintf("%d rows are saved, and a copy is in the quarantine", found.count())
	}

	checked.Add(f)
	found.addRows(checked.Report)
	return checked, nil
}

// look calls Find or Salvage, as given by how, with another database, and closes that database.
func look(path, other string, how func(string, *sqlite3.Conn) (*Findings, error)) (*Findings, error) {
	c, err := sqlite3.OpenFlags(Address(other), sqlite3.OPEN_READWRITE|sqlite3.OPEN_URI)
	if err != nil {
		return nil, err
	}
	found, err := how(path, c)
	return found, errors.Join(err, c.Close()) // Close copies the log into the database
}

// IsEmpty reports whether the database has no intact rows.
func (f *Findings) IsEmpty() bool { return f.count() == 0 }

func (f *Findings) count() (n int) {
	for _, rows := range f.Rows {
		n += rows
	}
	return n
}

// addRows reports the lost rows.
func (f *Findings) addRows(r *damage.Report) {
	for i := range f.Lost {
		r.Add(damage.Finding{What: f.Lost[i].String(), Problem: "the row is damaged", Lost: "the row"})
	}
	for i := range f.Old {
		r.Add(damage.Finding{
			What: f.Old[i].String(), Problem: "the row may be older than it was",
			Lost: "changes of the row, if there were some",
		})
	}

	if f.AreMoreLost {
		r.Add(damage.Finding{What: "further rows", Problem: "may be damaged", Lost: "rows that nothing names any more"})
	}
}
