package sessions

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/keep/snapshot"
)

// CheckFiles reads all sessions of earlier versions, which are files next to the store. With a
// quarantine, it moves damaged files there.
func CheckFiles(q *damage.Quarantine) (*damage.Report, error) {
	report := &damage.Report{}
	k, err := newKeeper(nil)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(k.files)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	for _, entry := range entries {
		if !entry.Type().IsRegular() || k.id(entry.Name()).Check() != nil {
			continue
		}
		report.Files++
		problem := k.checkFile(entry.Name())
		if problem == nil {
			continue
		}
		f := damage.Finding{
			What: filepath.Join("sessions", entry.Name()), Problem: problem.Error(), Lost: "session " + entry.Name(),
		}
		if q != nil {
			if err := q.Take(filepath.Dir(k.files), f.What); err != nil {
				return nil, err
			}
			f.Done = "it is in the quarantine"
		}
		report.Add(f)
	}
	return report, nil
}

// checkFile returns the reason why a session cannot be continued, or nil.
func (k *Keeper) checkFile(name string) error {
	file, err := k.openFile(name)
	if err != nil {
		return err
	}
	if file == nil {
		return nil // the session has just been deleted
	}
	defer file.Close()
	_, state, err := readFile(file)
	if err == nil && len(state) > 0 {
		_, _, err = snapshot.Read(bytes.NewReader(state))
	}
	return err
}
