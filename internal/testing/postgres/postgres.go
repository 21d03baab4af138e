// Package postgres starts servers of PostgreSQL for tests: private ones, which a test may kill, and
// one that the tests of a package share.
//
// A server runs as an ordinary user, writes with fsync, and listens on a socket in a folder that
// only this user and root can enter. A package that starts servers calls [End] in TestMain.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// Server is a server of PostgreSQL, which ends with its test.
type Server struct {
	bin string // the folder of the programs
	dir string // the folder of the socket and of the data

	settings []string
	process  *exec.Cmd // the guard, which stops the server when its stdin ends
	stdin    io.Closer
	pid      int
	isPaused bool
}

// readyWithin bounds how long a server takes to start or to stop: a busy machine is slow.
const readyWithin = 2 * time.Minute

// template is a data folder that was initialised once, and that each server copies.
var template = struct {
	sync.Mutex
	dir    string
	shared *Server
}{}

// Shared returns the server that the tests of a package share. Each test takes a schema of its own.
// Without PostgreSQL, it skips the test.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	bin := skip.WithoutPostgres(tb)

	template.Lock()
	defer template.Unlock()
	if template.shared == nil {
		s, err := create(tb.Context(), bin, nil)
		if err != nil {
			tb.Fatal(err)
		}
		template.shared = s
	}
	return template.shared
}

// Start starts a server for one test, with settings such as "synchronous_commit=off". Without
// PostgreSQL, it skips the test.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	bin := skip.WithoutPostgres(tb)

	template.Lock()
	defer template.Unlock()
	s, err := create(tb.Context(), bin, settings)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.remove)
	return s
}

// End stops the shared server and deletes its data. It is for TestMain.
func End() {
	template.Lock()
	defer template.Unlock()
	if template.shared != nil {
		template.shared.remove()
		template.shared = nil
	}
	if template.dir != "" {
		_ = os.RemoveAll(template.dir)
		template.dir = ""
	}
}

// create starts a server with a copy of the template. The caller holds template.
func create(ctx context.Context, bin string, settings []string) (_ *Server, err error) {
	if template.dir == "" {
		dir, err := initialise(ctx, bin)
		if err != nil {
			return nil, err
		}
		template.dir = dir
	}

	s, err := makeServer(bin, settings)
	if err != nil {
		return nil, err
	}

	if err := run(ctx, "cp", "-a", filepath.Join(template.dir, "data"), s.data()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.start(ctx); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// initialise makes the template.
func initialise(ctx context.Context, bin string) (dir string, err error) {
	dir, err = makeFolder()
	if err != nil {
		return "", err
	}
	err = run(ctx, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", role,
		"-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// makeServer makes the folder of a server.
func makeServer(bin string, settings []string) (*Server, error) {
	dir, err := makeFolder()
	if err != nil {
		return nil, err
	}
	return &Server{bin: bin, dir: dir, settings: settings}, nil
}

// makeFolder makes a folder for the user that runs servers. Its path is short, because the path of
// a socket has at most 107 bytes.
func makeFolder() (string, error) {
	dir, err := os.MkdirTemp("", "rlm-pg-")
	if err != nil {
		return "", err
	}
	return dir, giveAway(dir)
}

// run runs a program as the user that runs servers.
func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	lowerRights(cmd)
	cmd.Dir = os.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, out)
	}
	return nil
}

// role is the name of the only user of a database.
const role = "rlm"

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// guard runs a server and stops it when stdin ends, at the latest with the process of the test. A
// paused server stops when it continues.
const guard = `exec 3<&0; "$@" </dev/null 3<&- & echo $!; exec >/dev/null; cat <&3
kill -INT $!; kill -CONT $!; wait $!`

// start starts the server and waits until it answers.
func (s *Server) start(ctx context.Context) error {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	args := []string{
		"-c", guard, "sh", filepath.Join(s.bin, "postgres"), "-D", s.data(), "-k", s.dir,
		"-c", "listen_addresses=", "-c", "max_connections=150", "-c", "shared_buffers=32MB",
	}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "sh", args...)
	cmd.Dir, cmd.Stderr = os.TempDir(), log
	lowerRights(cmd)

	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}

	s.process, s.stdin = cmd, stdin
	line := make([]byte, 32)
	n, _ := stdout.Read(line)
	if s.pid, err = strconv.Atoi(string(bytes.TrimSpace(line[:n]))); err != nil {
		return fmt.Errorf("the server has no number: %w", err)
	}
	return s.await(ctx)
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

// await waits until the server answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()

	for {
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(s.log())
			return fmt.Errorf("the server does not answer: %w\n%s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// URL returns the address of the database, for pgx. With others, the address names several servers,
// of which a client takes the one that accepts writes.
func (s *Server) URL(others ...*Server) string {
	hosts, ports := []string{s.dir}, []string{"5432"}
	for _, other := range others {
		hosts, ports = append(hosts, other.dir), append(ports, "5432")
	}
	values := url.Values{"host": {strings.Join(hosts, ",")}, "port": {strings.Join(ports, ",")}, "sslmode": {"disable"}}
	if len(others) > 0 {
		values.Set("target_session_attrs", "read-write")
	}
	return "postgres://" + role + "@/postgres?" + values.Encode()
}

// Exec runs a statement.
func (s *Server) Exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), s.URL())
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(tb.Context()) }()
	if _, err := conn.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatal(err)
	}
}

// Kill ends all processes of the server at once, as a loss of power would.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	if err := s.signalAll(kill); err != nil {
		tb.Fatal(err)
	}
	s.wait()
}

// Restart starts a server that was killed.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// Pause stops all processes of the server with SIGSTOP: it accepts connections and does not answer.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	if err := s.signalAll(pause); err != nil {
		tb.Fatal(err)
	}
	s.isPaused = true
}

// Continue ends a pause.
func (s *Server) Continue(tb testing.TB) {
	tb.Helper()
	if err := s.signalAll(resume); err != nil {
		tb.Fatal(err)
	}
	s.isPaused = false
}

// wait waits until the server has ended.
func (s *Server) wait() {
	if s.process == nil {
		return
	}
	_ = s.stdin.Close()
	_ = s.process.Wait()
	s.process = nil
}

// remove stops the server and deletes its data.
func (s *Server) remove() {
	if s.isPaused {
		_ = s.signalAll(resume)
	}
	s.wait()
	_ = os.RemoveAll(s.dir)
}
