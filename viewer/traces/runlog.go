package traces

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
)

// OpenRunLog opens the record in the log of a named run, as rlm runs export writes it. Close
// deletes the temporary files.
func OpenRunLog(runLog io.Reader) (_ *Folder, err error) {
	record, notes, err := ReadRunLog(runLog)
	if err != nil {
		return nil, err
	}
	return OpenRebuilt(record, notes)
}

// ReadRunLog returns the record in the log of a named run. The notes list what was left out.
func ReadRunLog(runLog io.Reader) (record *trajectory.Rebuilt, notes []string, err error) {
	record = &trajectory.Rebuilt{}
	isRunLog := false
	notes, err = (&Lines{}).Each(runLog, func(line []byte) error {
		var e struct {
			Turn int             `json:"turn"`
			Kind string          `json:"kind"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		isRunLog = isRunLog || e.Kind != ""
		if e.Kind != "trace" {
			return nil
		}
		return record.Add(e.Turn, e.Data)
	})
	if err == nil && !isRunLog {
		err = errors.New("it is not the run log of a run: name a folder that --trace wrote, " +
			"a file of rlm runs export, or a named run")
	}
	return record, notes, err
}

// OpenRebuilt opens a record rebuilt from a run log, with notes about what it lacks.
func OpenRebuilt(record *trajectory.Rebuilt, notes []string) (_ *Folder, err error) {
	dir, err := os.MkdirTemp("", "rlm-record-")
	if err != nil {
		return nil, err
	}
	further, err := record.Write(dir)
	var f *Folder
	if err == nil {
		f, err = Open(dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	f.temporary = dir
	f.Root.Notes = append(f.Root.Notes, append(notes, further...)...)
	return f, nil
}
