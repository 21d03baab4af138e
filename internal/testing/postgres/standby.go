package postgres

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts a copy of the server. From its return on, a commit on the server waits until the
// standby has it on its disk.
func (s *Server) Standby(tb testing.TB) *Server {
	tb.Helper()
	standby, err := makeServer(s.bin, s.settings)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(standby.remove)

	name := filepath.Base(standby.dir)
	err = run(tb.Context(), filepath.Join(s.bin, "pg_basebackup"), "-h", s.dir, "-U", role,
		"-D", standby.data(), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync")
	if err != nil {
		tb.Fatal(err)
	}

	info := fmt.Sprintf("primary_conninfo=host=%s user=%s application_name=%s", s.dir, role, name)
	standby.settings = append(standby.settings[:len(standby.settings):len(standby.settings)], info)
	if err := standby.start(tb.Context()); err != nil {
		tb.Fatal(err)
	}

	s.Exec(tb, `ALTER SYSTEM SET synchronous_standby_names = '"`+name+`"'`)
	s.Exec(tb, "SELECT pg_reload_conf()")
	s.awaitTrue(tb, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
	return standby
}

// Promote makes a standby accept writes.
func (s *Server) Promote(tb testing.TB) {
	tb.Helper()
	s.Exec(tb, "SELECT pg_promote()")
	s.awaitTrue(tb, "SELECT NOT pg_is_in_recovery()")
}

// awaitTrue waits until a query returns true.
func (s *Server) awaitTrue(tb testing.TB, query string) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), s.URL())
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(tb.Context()) }()

	limit := time.After(readyWithin)
	for {
		var is bool
		if err := conn.QueryRow(tb.Context(), query).Scan(&is); err != nil {
			tb.Fatal(err)
		}
		if is {
			return
		}
		select {
		case <-limit:
			tb.Fatalf("it does not become true: %s", query)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
