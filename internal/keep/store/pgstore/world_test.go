package pgstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/testing/postgres"
)

func TestMain(m *testing.M) {
	if url := os.Getenv("STORE_OWNER"); url != "" {
		ownUntilLost(url)
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		postgres.End()
		os.Exit(code)
	}))
}

// The tests use this log.
var runA = store.ID{Kind: store.Run, Name: "a"}

// memory is an object store in memory.
type memory struct {
	mu    sync.Mutex
	bytes map[string][]byte
	times map[string]time.Time
}

func newMemory() *memory {
	return &memory{bytes: map[string][]byte{}, times: map[string]time.Time{}}
}

func (m *memory) Put(ctx context.Context, from io.Reader) (objects.Object, error) {
	content, err := io.ReadAll(from)
	if err != nil || ctx.Err() != nil {
		return objects.Object{}, context.Cause(ctx)
	}
	sum := sha256.Sum256(content)
	name := hex.EncodeToString(sum[:])
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes[name], m.times[name] = content, time.Now()
	return objects.Object{Digest: name, Size: int64(len(content)), Stored: m.times[name]}, nil
}

func (m *memory) Open(_ context.Context, digest string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.bytes[digest]
	if !ok {
		return nil, objects.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

func (m *memory) Stat(_ context.Context, digest string) (objects.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.bytes[digest]
	if !ok {
		return objects.Object{}, objects.ErrNotFound
	}
	return objects.Object{Digest: digest, Size: int64(len(content)), Stored: m.times[digest]}, nil
}

func (m *memory) Remove(_ context.Context, digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.bytes, digest)
	return nil
}

func (m *memory) List(ctx context.Context, each func(objects.Object) error) error {
	m.mu.Lock()
	names := slices.Sorted(maps.Keys(m.bytes))
	m.mu.Unlock()
	for _, name := range names {
		if o, err := m.Stat(ctx, name); err == nil {
			if err := each(o); err != nil {
				return err
			}
		}
	}
	return nil
}

var schemas atomic.Int64

// world is a database with its objects, which several stores share.
type world struct {
	server  *postgres.Server
	url     string
	options Options
}

// newWorld returns an empty schema of the shared server. The leases outlast any pause of a busy
// machine.
func newWorld(tb testing.TB) *world {
	tb.Helper()
	s := postgres.Shared(tb)
	return &world{s, s.URL(), Options{
		Schema: fmt.Sprintf("t%d", schemas.Add(1)), Objects: newMemory(), Spare: -1,
		Renew: time.Second, Valid: time.Minute, Timeout: 30 * time.Second,
	}}
}

func (w *world) open(tb testing.TB) *Store {
	tb.Helper()
	s, err := Open(context.Background(), w.url, w.options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// begin opens a store with the log runA, and takes its lease.
func (w *world) begin(tb testing.TB) (*Store, store.Lease) {
	tb.Helper()
	s := w.open(tb)
	check(tb, s.Create(context.Background(), store.Log{ID: runA}))
	lease, err := s.Acquire(context.Background(), runA)
	check(tb, err)
	return s, lease
}

// connect opens a connection that has nothing to do with a store.
func (w *world) connect(tb testing.TB) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(context.Background(), w.url)
	check(tb, err)
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	_, err = conn.Exec(context.Background(), "SET search_path = "+w.options.Schema)
	check(tb, err)
	return conn
}

// exec runs a statement on the tables.
func (w *world) exec(tb testing.TB, sql string) {
	tb.Helper()
	conn := w.connect(tb)
	_, err := conn.Exec(context.Background(), sql)
	check(tb, err)
	check(tb, conn.Close(context.Background()))
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
