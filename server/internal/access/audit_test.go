package access

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/damage"
)

// TestDamageOfTheAuditLogIsFound checks a log with a damaged line, a cut log, and a deleted log.
func TestDamageOfTheAuditLogIsFound(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, AuditFile)
	old := "{\"time\":\"2026-01-31T00:00:00Z\",\"action\":\"of an earlier version\"}\n"
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	audit, err := OpenAudit(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := audit.Add(Entry{Action: fmt.Sprint("action ", i), Object: `a "quoted" object`}); err != nil {
			t.Fatal(err)
		}
	}
	if err := audit.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := CheckAudit(dir, int64(len(whole)), nil); err != nil || found != nil {
		t.Errorf("a whole log: %v, %v", found, err)
	}

	places := []int{bytes.Index(whole, []byte(`"sum"`)) + 1} // its name in the first line that has one
	for at := len(old); at < len(whole); at += 7 {           // also in checksums and line ends
		places = append(places, at)
	}
	for _, at := range places {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := CheckAudit(dir, 0, nil); err != nil || found == nil {
			t.Errorf("a flip at %d of %q: %v, %v", at, whole[max(at-10, 0):min(at+10, len(whole))], found, err)
		}
		q := damage.NewQuarantine(dir)
		if found, err := CheckAudit(dir, 0, q); err != nil || !strings.Contains(found.Done, "quarantine") {
			t.Errorf("the repair of a flip at %d: %v, %v", at, found, err)
		}
		left, err := os.ReadFile(path)
		if err != nil || bytes.Count(left, []byte{'\n'}) < 4 || !bytes.HasPrefix(left, []byte(old)) {
			t.Errorf("after a flip at %d is left %s, %v", at, left, err)
		}
		if found, err := CheckAudit(dir, 0, nil); err != nil || found != nil {
			t.Errorf("after the repair of a flip at %d: %v, %v", at, found, err)
		}
	}

	for _, size := range []int{len(whole) - 1, len(whole) - 20, len(old), 0} {
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if found, err := CheckAudit(dir, int64(len(whole)), nil); err != nil || found == nil {
			t.Errorf("a cut at %d: %v, %v", size, found, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if found, err := CheckAudit(dir, 1, nil); err != nil || found == nil {
		t.Errorf("no log: %v, %v", found, err)
	}
	if found, err := CheckAudit(dir, 0, nil); err != nil || found != nil {
		t.Errorf("a folder that never had one: %v, %v", found, err)
	}
}
