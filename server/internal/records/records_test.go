package records

import (
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// TestTablesOfVersion1AreUpgraded checks that the database of an earlier program keeps its rows.
func TestTablesOfVersion1AreUpgraded(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `ALTER TABLE spending DROP COLUMN tool_calls; DROP TABLE sessions;
		INSERT INTO spending (key, tenant, day, calls) VALUES ('k', 't', '2026-01-31', 3); PRAGMA user_version = 1;`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}

	if db, err = Open(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var calls, tools int
	row := db.QueryRowContext(t.Context(), `SELECT calls, tool_calls FROM spending`)
	if err := row.Scan(&calls, &tools); err != nil || calls != 3 || tools != 0 {
		t.Errorf("%d calls, %d tool calls, %v", calls, tools, err)
	}
	if used, err := Used(t.Context(), db, "t"); err != nil || used != 0 {
		t.Errorf("%d bytes, %v", used, err)
	}
}

// TestContentsOfVersion3AreEntered checks that the folder of an earlier program keeps its files,
// contexts, states and snapshots, that missing ones are noticed, and that the remains of a killed
// server are deleted.
func TestContentsOfVersion3AreEntered(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `DROP TABLE contents; DROP TABLE lost;
		INSERT INTO files VALUES ('file-a', 't', 'a', 'user_data', 4, 1), ('file-gone', 't', 'b', 'user_data', 9, 1);
		INSERT INTO runs (id, tenant, key, spec, question, background, status, created)
			VALUES ('run_a', 't', 'k', '{"contexts":["log","more"]}', 'q', 0, 'answered', 1);
		INSERT INTO sessions VALUES ('sess_a', 't', 'k', '', '{"contexts":[{"name":"log","bytes":4}]}', x'',
			'{"bytes":5}', 0, 9, 1, 1), ('sess_new', 't', 'k', '', '{}', x'', '{}', 1, 0, 1, 1);
		PRAGMA user_version = 3;`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"files/file-a", "runs/run_a/contexts/0", "runs/run_a/contexts/1", "runs/run_a/events.jsonl",
		"sessions/sess_a/state", "sessions/sess_a/contexts/0", "sessions/sess_a/snapshots/snap_a", "files/file-part",
		"runs/run_part/contexts/0",
		"sessions/sess_part/state", "sessions/sess_a/new-1", "sessions/sess_a/snapshots/new-2",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err := errors.Join(err, os.WriteFile(path, []byte("data"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}

	if db, err = Open(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := Contents(t.Context(), db, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, c := range all {
		if got[c.Path] = c.Bytes; len(c.Digest) > 0 {
			t.Errorf("%s has the digest %x", c.Path, c.Digest)
		}
	}
	want := map[string]int64{
		"files/file-a": 4, "files/file-gone": -1, "runs/run_a/contexts/0": 4, "runs/run_a/contexts/1": 4,
		"runs/run_a/events.jsonl": -1, "sessions/sess_a/state": 4, "sessions/sess_a/contexts/0": 4,
		"sessions/sess_a/snapshots/snap_a": 4,
	}
	if !maps.Equal(got, want) {
		t.Errorf("the contents are %v, want %v", got, want)
	}
	for _, part := range []string{
		"files/file-part", "runs/run_part", "sessions/sess_part", "sessions/sess_a/new-1",
		"sessions/sess_a/snapshots/new-2",
	} {
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(part))); err == nil {
			t.Errorf("%s is still there", part)
		}
	}
}

// TestAFolderBelongsToItsContents checks that a path does not match other paths of which it is only
// a prefix.
func TestAFolderBelongsToItsContents(t *testing.T) {
	db, err := Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = Within(t.Context(), db, func(tx *sql.Tx) error {
		for _, path := range []string{"runs/a", "runs/a/x", "runs/a/x/y", "runs/a0", "runs/a-b", "runs/ab/x"} {
			if err := AddContent(t.Context(), tx, path, []byte{1}, 1); err != nil {
				return err
			}
		}
		return RemoveContents(t.Context(), tx, "runs/a")
	})
	if err != nil {
		t.Fatal(err)
	}
	left, err := Contents(t.Context(), db, "runs")
	if err != nil || len(left) != 3 {
		t.Errorf("%v, %v", left, err)
	}
	if has, err := HasContents(t.Context(), db, "runs/a"); err != nil || has {
		t.Errorf("it has contents: %t, %v", has, err)
	}
}
