package skip

import (
	"os"
	"path/filepath"
	"testing"
)

func TestANamedPostgresMustBeThere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RLM_POSTGRES", dir)
	v := &verdicts{}
	if WithoutPostgres(v); v.how != "failed" {
		t.Errorf("an empty folder: %q", v.how)
	}

	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	v = &verdicts{}
	if got := WithoutPostgres(v); v.how != "" || got != dir {
		t.Errorf("got %q, %q", got, v.how)
	}
}

func TestTheNewestPostgresComesFirst(t *testing.T) {
	for dir, want := range map[string]int{
		"/usr/lib/postgresql/15/bin": 15, "/usr/pgsql-9.6/bin": 9, "/usr/local/pgsql/bin": 0,
	} {
		if got := versionOf(dir); got != want {
			t.Errorf("%s: %d, want %d", dir, got, want)
		}
	}
}
