package postgres

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) {
	code := m.Run()
	End()
	os.Exit(code)
}

func count(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAKilledServerRestartsWithItsData(t *testing.T) {
	s := Start(t)
	s.Exec(t, "CREATE TABLE t AS SELECT 1")
	s.Kill(t)
	if _, err := pgx.Connect(t.Context(), s.URL()); err == nil {
		t.Error("a killed server answers")
	}
	s.Restart(t)
	if n := count(t, s.URL()); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestAPausedServerIsSilent(t *testing.T) {
	s := Start(t)
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := pgx.Connect(ctx, s.URL()); err == nil {
		t.Error("a paused server answers")
	}
	s.Continue(t)
	s.Exec(t, "SELECT 1")
}

func TestAStandbyTakesOver(t *testing.T) {
	s := Start(t)
	standby := s.Standby(t)
	s.Exec(t, "CREATE TABLE t AS SELECT 1")
	s.Kill(t)
	standby.Promote(t)
	if n := count(t, s.URL(standby)); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestTestsShareAServer(t *testing.T) {
	first := Shared(t)
	if second := Shared(t); first != second {
		t.Error("two servers")
	}
}
