package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/keep/damage"
)

// CheckEvents looks for damage in the log of a run's events, whose path is relative to the data
// folder. If there is a quarantine, it repairs the log, in which intact events keep their numbers.
// It returns nil if all events are intact.
func CheckEvents(dir, path string, q *damage.Quarantine) (*damage.Finding, error) {
	name := filepath.Join(dir, filepath.FromSlash(path))
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &damage.Finding{
			What: path, Problem: "it is missing", Lost: "the events of the run; its answer stays",
		}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()

	whole, damaged := 0, 0
	err = eachEvent(file, func(_ int64, event []byte) error {
		if IsDamaged(event) {
			damaged++
		} else {
			whole++
		}
		return nil
	})
	if err != nil || damaged == 0 {
		return nil, err
	}

	found := &damage.Finding{
		What: path, Problem: fmt.Sprintf("at %d places it is not what was written", damaged), Lost: "the events there",
	}
	if q == nil {
		return found, nil
	}

	keep, err := q.Path(filepath.FromSlash(path))
	if err == nil {
		err = copyTo(name, keep)
	}
	if err == nil {
		_, _, err = rewrite(name, file)
	}

	found.Done = fmt.Sprintf("%d events are saved, and a copy is in the quarantine", whole)
	return found, err
}

func copyTo(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}
