// Package pgstore implements a store in a database of PostgreSQL, for a fleet of processes. Large
// contents are in an object store.
//
// A process that takes leases is a worker: it has a row, which it renews. Each write names the
// worker and the epoch of its lease, and its statement changes nothing unless both are valid. So a
// process that was paused for too long cannot write, whatever it believes.
package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// Options configure a store. The zero value of an option stands for its default.
type Options struct {
	// Schema is the schema of the tables: lower-case letters, digits and underscores. The default is
	// "rlm".
	Schema string
	// Objects keeps contents of more than 64 KiB. Nothing else may keep objects there: Collect
	// deletes all objects that the store does not know. It is required.
	Objects objects.Store
	// Reads says that the caller only reads. The store may then be on a standby, or belong to
	// another role.
	Reads bool

	// Renew is the time between two renewals of the leases, 3 s by default. Valid is how long they
	// are valid after a renewal, by the clock of the database: 10 s by default.
	Renew, Valid time.Duration
	// Timeout bounds how long a call waits for a server that does not answer, 10 s by default.
	Timeout time.Duration
	// Spare is the age up to which Collect spares contents without an entry, because the entry may
	// still be on its way: one hour by default. If it is negative, Collect spares none.
	Spare time.Duration
}

// complete fills in the defaults, and checks the options.
func (o *Options) complete() error {
	setDefault(&o.Schema, "rlm")
	setDefault(&o.Renew, 3*time.Second)
	setDefault(&o.Valid, 10*time.Second)
	setDefault(&o.Timeout, 10*time.Second)
	setDefault(&o.Spare, time.Hour)

	switch {
	case !validSchema.MatchString(o.Schema):
		return fmt.Errorf("%.80q cannot name a schema: use up to 63 lower-case letters, digits and "+
			"underscores", o.Schema)
	case o.Objects == nil:
		return errors.New("it needs an object store for large contents")
	case o.Renew < 0 || o.Timeout < 0 || o.Valid < 2*o.Renew:
		return fmt.Errorf("a lease that is valid for %v cannot be renewed every %v", o.Valid, o.Renew)
	}
	o.Spare = max(o.Spare, 0)
	return nil
}

func setDefault[T comparable](option *T, value T) {
	var zero T
	if *option == zero {
		*option = value
	}
}

// Store is a store in a database. Any number of processes can use it at the same time.
type Store struct {
	o                   Options
	schema              string // quoted
	objects             objects.Store
	readOnly            bool
	writeSQL, removeSQL string // see writeOnce

	pool *pgxpool.Pool
	beat *pgxpool.Pool // for renewals, which must not wait for others

	background context.Context //nolint:containedctx // ends with Close
	stop       context.CancelFunc
	tasks      sync.WaitGroup // renewals
	writing    sync.WaitGroup // writers

	registering sync.Mutex // held while a worker registers

	mu        sync.Mutex
	closed    bool
	worker    *worker // the present one, or nil
	held      map[store.ID]*held
	claiming  map[store.ID]bool
	ready     []*held // those with something to write that no writer has
	hasWriter bool    // one takes what is ready
	slow      int     // writers that wait for a slow statement
	unfreed   []*held // released leases that the database still has
}

var _ store.Store = (*Store)(nil)

// errClosed is the error of a store after Close.
var errClosed = errors.New("the store is closed")

// maxMessage bounds a message of the server, in bytes. The largest is the row of a log, with its
// specification.
const maxMessage = 16 << 20

// Open opens the store in a database, and creates its tables if necessary. The URL has the form
// postgres://user@host/database, may name several hosts, and takes all parameters of libpq and
// pgxpool. The errors do not contain the password.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	s, err := open(ctx, url, o)
	if err != nil {
		return nil, fmt.Errorf("cannot open the store in PostgreSQL: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, url string, o Options) (_ *Store, err error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}

	s := &Store{
		o: o, schema: `"` + o.Schema + `"`, objects: o.Objects,
		held: map[store.ID]*held{}, claiming: map[store.ID]bool{},
	}
	s.writeSQL = s.qualify(writeSQL + selectSQL)
	s.removeSQL = s.qualify(writeSQL + removeSQL + selectSQL)
	s.background, s.stop = context.WithCancel(context.Background())
	s.configure(config)
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	config = config.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = 1, 0, 0
	if s.beat, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		s.pool.Close()
		return nil, err
	}

	if err := s.setUp(ctx); err != nil {
		s.stop()
		s.pool.Close()
		s.beat.Close()
		return nil, err
	}
	return s, nil
}

// setUp makes the tables usable.
func (s *Store) setUp(ctx context.Context) error {
	if s.o.Reads {
		if err := s.decideReadOnly(ctx); err != nil {
			return err
		}
	}
	return s.migrate(ctx)
}

// configure bounds what a server can do to this process: be silent, or send too much.
func (s *Store) configure(config *pgxpool.Config) {
	c := config.ConnConfig
	each := s.attemptTime() / time.Duration(len(c.Fallbacks)+2) // an attempt reaches the last host
	if c.ConnectTimeout <= 0 || c.ConnectTimeout > each {
		c.ConnectTimeout = each
	}
	c.MaxProtocolMessageBodyLen = maxMessage
	c.OnNotice = noteWarning
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "rlm"
	}

	config.MaxConns = max(config.MaxConns, mostSlow+5)
	config.PingTimeout = s.attemptTime()
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		if s.o.Reads {
			return nil
		}
		return checkDurability(ctx, c)
	}
}

// warned is the key under which a connection notes that the server has sent a warning.
const warned = "rlm.warned"

// noteWarning notes a warning on its connection. A server that gives up waiting for its synchronous
// standby acknowledges the commit, with a warning.
func noteWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && n.Code == "01000" {
		c.CustomData()[warned] = true
	}
}

// IsReadOnly implements [store.Store].
func (s *Store) IsReadOnly() bool { return s.readOnly }

// Close implements [store.Store]. It releases all leases. If the server is silent, it takes up to
// 15 s longer than the timeout, which the client of PostgreSQL gives to connections.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var errs []error
	for _, h := range s.held {
		s.makeReady(h)
	}
	s.mu.Unlock()

	s.writing.Wait()

	s.mu.Lock()
	w := s.worker
	for _, h := range s.held {
		errs = append(errs, h.takeNoted())
	}
	clear(s.held)
	s.mu.Unlock()

	s.stop()
	s.tasks.Wait()
	if w != nil {
		errs = append(errs, s.removeWorker(context.Background(), w))
	}
	s.pool.Close()
	s.beat.Close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cannot close the store: %w", err)
	}
	return nil
}
