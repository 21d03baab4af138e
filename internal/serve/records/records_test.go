package records

import (
	"errors"
	"testing"
)

// TestTablesOfVersion1AreUpgraded: a folder of an earlier program keeps its rows.
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
