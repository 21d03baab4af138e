package tablesql

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// Sorting the rows of this table by word needs more memory than the engine has.
const (
	sortedRows  = 400_000
	sortedWords = 7
	sortMemory  = 16 << 20
)

func openSorted(t *testing.T, disk int64) *Tables {
	t.Helper()
	var text strings.Builder
	text.WriteString("id,word,rest\n")
	for i := range sortedRows {
		fmt.Fprintf(&text, "%d,word%d,%040d\n", i, i*5%sortedWords, i)
	}
	limits := Limits{Time: time.Minute, Memory: sortMemory, Disk: disk, Rows: 1000, Bytes: 1 << 20}
	return open(t, limits, map[string]string{"big.csv": text.String()})
}

// TestSortsLargerThanMemoryUseTheDisk checks that the files have no name, and do not exist after
// the query.
func TestSortsLargerThanMemoryUseTheDisk(t *testing.T) {
	skip.UnderRace(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	tables := openSorted(t, 1<<30)
	before := countFiles(t)

	for query, want := range map[string]string{
		"select word, count(*) n, max(rest) last from big group by word order by word limit 1": fmt.Sprintf(
			`[{"word":"word0","n":%d,"last":"%040d"}]`, sortedRows/sortedWords+1, sortedRows-sortedRows%sortedWords),
		"select id from big order by rest desc limit 1 offset 2": fmt.Sprintf(`[{"id":%d}]`, sortedRows-3),
		"select count(*) n from (select distinct rest from big)": fmt.Sprintf(`[{"n":%d}]`, sortedRows),
	} {
		if rows, err := tables.Query(t.Context(), query, nil); err != nil || string(rows) != want {
			t.Errorf("%s: %s, %v", query, rows, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
	if after := countFiles(t); after > before {
		t.Errorf("%d files are open, before it were %d", after, before)
	}
}

// countFiles counts the open files of this process, if the system reports them.
func countFiles(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestASortThatIsTooLargeSaysSo(t *testing.T) {
	skip.UnderRace(t)
	const query = "select word, max(rest) last from big group by word"
	before := countFiles(t)
	if rows, err := openSorted(t, 1<<20).Query(t.Context(), query, nil); err == nil ||
		!strings.Contains(err.Error(), "than 1.0 MiB: select fewer columns") {
		t.Errorf("a small disk: %.100s, %v", rows, err)
	}

	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	t.Setenv("SQLITE_TMPDIR", os.Getenv("TMPDIR"))
	if rows, err := openSorted(t, 1<<30).Query(t.Context(), query, nil); err == nil ||
		!strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("no folder: %.100s, %v", rows, err)
	}
	if after := countFiles(t); after > before {
		t.Errorf("%d files are open, before it were %d", after, before)
	}
}

// TestSortsLeaveHalfOfTheDisk checks that a file occupies at most half of the space that was free.
func TestSortsLeaveHalfOfTheDisk(t *testing.T) {
	disk := newSpill(1 << 62)
	defer disk.forget()
	file, _, err := disk.Open("", vfs.OPEN_DELETEONCLOSE|vfs.OPEN_READWRITE|vfs.OPEN_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("a"), 0); err != nil {
		t.Error(err)
	}

	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return // the free space is not checked
	}
	disk.used = 1 << 60 // more than any disk has
	if _, err := file.WriteAt([]byte("a"), 1); !errors.Is(err, sqlite3.FULL) {
		t.Errorf("a disk without room: %v", err)
	}
}
