package access

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/keep/damage"
)

// maxLine bounds a line when reading the log, in bytes. Each entry is smaller.
const maxLine = 64 << 10

// CheckAudit looks for damage in the audit log of a data folder, which had at least atLeast bytes
// when the last server ended. If there is a quarantine, it moves damaged lines there. It returns
// nil if all lines are intact.
func CheckAudit(dir string, atLeast int64, q *damage.Quarantine) (*damage.Finding, error) {
	path := filepath.Join(dir, AuditFile)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if atLeast == 0 {
			return nil, nil //nolint:nilnil // documented: nothing is damaged
		}
		return &damage.Finding{What: AuditFile, Problem: "it is missing", Lost: "all entries"}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()

	whole, bad, size, err := splitLines(file)
	if err != nil {
		return nil, err
	}
	isShort := size < atLeast
	if len(bad) == 0 && !isShort {
		return nil, nil //nolint:nilnil // documented: nothing is damaged
	}

	found := &damage.Finding{
		What: AuditFile, Problem: fmt.Sprintf("%d lines are not what was written", len(bad)), Lost: "these entries",
	}
	if isShort {
		found.Problem += fmt.Sprintf("; it has %d bytes, and had %d", size, atLeast)
		found.Lost = "these entries, and the last ones"
	}

	if q == nil || len(bad) == 0 {
		return found, nil
	}

	found.Done = "the damaged lines are in the quarantine"
	err = q.Note(AuditFile, toStrings(bad)...)
	if err == nil {
		err = replaceFile(path, bytes.Join(whole, nil))
	}
	return found, err
}

// splitLines separates the intact lines, with their line ends, from the damaged ones. After a line
// with a checksum, each line must have one.
func splitLines(file io.Reader) (whole, bad [][]byte, size int64, err error) {
	lines, hasSums := bufio.NewReaderSize(file, maxLine), false
	for {
		line, err := lines.ReadSlice('\n')
		size += int64(len(line))
		isLong := errors.Is(err, bufio.ErrBufferFull)
		isEnd := errors.Is(err, io.EOF)
		if err != nil && !isLong && !isEnd {
			return nil, nil, size, err
		}
		content := bytes.TrimSuffix(line, []byte{'\n'})
		hasSum, is := isWhole(content)
		switch {
		case len(content) == 0: // written after an incomplete line
		case is && !isEnd && (hasSum || !hasSums):
			whole = append(whole, bytes.Clone(line))
			hasSums = hasSums || hasSum
		default:
			bad = append(bad, bytes.Clone(content))
		}
		if isEnd {
			return whole, bad, size, nil
		}
	}
}

func toStrings(lines [][]byte) (all []string) {
	for _, line := range lines {
		all = append(all, string(line))
	}
	return all
}

// replaceFile replaces a file atomically: after a crash, the old file is still there.
func replaceFile(path string, data []byte) error {
	fresh, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh.Name()) }()
	_, err = fresh.Write(data)
	if err == nil {
		err = fresh.Sync()
	}
	if err := errors.Join(err, fresh.Close()); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), path)
}
