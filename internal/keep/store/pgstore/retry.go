package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// attemptTime bounds one attempt at a short statement. It is a third of the timeout, so that a
// connection to a server that is gone leaves time for the one that has taken over.
func (s *Store) attemptTime() time.Duration { return s.o.Timeout / 3 }

// try runs work on a connection, and repeats it while the server cannot be reached or asks for a
// repetition. So the work must be harmless if its last outcome is unknown. try ends with the
// context, and after the timeout.
func (s *Store) try(ctx context.Context, work func(context.Context, *pgx.Conn) error) error {
	return s.tryFor(ctx, s.pool, s.attemptTime(), work)
}

// tryLong is like try, for a statement that may take as long as the timeout.
func (s *Store) tryLong(ctx context.Context, work func(context.Context, *pgx.Conn) error) error {
	return s.tryFor(ctx, s.pool, s.o.Timeout, work)
}

func (s *Store) tryFor(
	ctx context.Context, pool *pgxpool.Pool, each time.Duration, work func(context.Context, *pgx.Conn) error,
) error {
	whole, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()

	for pause := newBackoff(); ; {
		err := attempt(whole, pool, each, work)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !isTransient(err):
			return err
		case !pause.wait(whole):
			return fmt.Errorf("the database has not done it within %v: %w", s.o.Timeout, err)
		}
	}
}

// attempt runs work on a connection once.
func attempt(
	ctx context.Context, pool *pgxpool.Pool, limit time.Duration, work func(context.Context, *pgx.Conn) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()

	notes := conn.Conn().PgConn().CustomData()
	delete(notes, warned)
	err = work(ctx, conn.Conn())
	if _, isWarned := notes[warned]; err == nil && isWarned {
		return errWarned
	}
	if err != nil && isTransient(err) {
		discard(pool, conn, err)
	}
	return err
}

// discard closes connections that a failure has made useless: a server that was demoted or ended
// has others in the pool.
func discard(pool *pgxpool.Pool, conn *pgxpool.Conn, err error) {
	var refused *pgconn.PgError
	isAnswer := errors.As(err, &refused)
	if isAnswer && refused.Code != codeReadOnly && refused.Code[:2] != "57" {
		return // the connection is well
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel() // do not wait for the server
	_ = conn.Conn().Close(ctx)
	pool.Reset()
}

// These codes of PostgreSQL decide what a failure means.
const (
	codeReadOnly   = "25006"
	codeForeignKey = "23503"
	codeUnique     = "23505"
)

// isTransient reports whether a failure may pass: the server is unreachable, is starting, has been
// demoted, or asks for a repetition. It says nothing about the outcome of a commit.
func isTransient(err error) bool {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		switch answer.Code {
		case codeReadOnly,
			"40001", "40P01", // serialisation failure, deadlock
			"55P03", "57014", // lock timeout, cancelled
			"53300": // too many connections
			return true
		}
		return answer.Code[:2] == "08" || answer.Code[:2] == "57" // connection, shutdown
	}

	var network net.Error
	var connecting *pgconn.ConnectError
	return errors.Is(err, errWarned) || errors.As(err, &network) || errors.As(err, &connecting) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) || pgconn.SafeToRetry(err)
}

// backoff waits between attempts, longer each time.
type backoff time.Duration

func newBackoff() *backoff {
	b := backoff(20 * time.Millisecond)
	return &b
}

// wait reports whether the context leaves time for another attempt.
func (b *backoff) wait(ctx context.Context) bool {
	pause := time.Duration(*b)
	*b = min(2*(*b), backoff(time.Second))
	timer := time.NewTimer(pause/2 + rand.N(pause))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// each runs a query and calls a function for each row. It may take any time, as long as rows come:
// the timeout bounds only the silence of the server.
func (s *Store) each(ctx context.Context, sql string, args []any, row func(pgx.Rows) error) error {
	sql, last := s.qualify(sql), time.Now().Add(s.o.Timeout)
	for pause := newBackoff(); ; {
		seen, err := s.eachOnce(ctx, sql, args, row)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case seen > 0 || !isTransient(err) || time.Now().After(last) || !pause.wait(ctx):
			return err
		}
	}
}

// eachOnce is one attempt of each, and returns how many rows came.
func (s *Store) eachOnce(ctx context.Context, sql string, args []any, row func(pgx.Rows) error) (seen int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(s.o.Timeout, func() { cancel(errSilent) })
	defer silence.Stop()
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
	}()

	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()

	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()

	for rows.Next() {
		silence.Reset(s.o.Timeout)
		seen++
		if err := row(rows); err != nil {
			return seen, err
		}
	}
	if err = rows.Err(); err != nil && isTransient(err) {
		discard(s.pool, conn, err)
	}
	return seen, err
}

// errWarned is the error of a commit that the server acknowledged although it has given up waiting
// for its synchronous standby. A repetition waits again.
var errWarned = errors.New("the server does not know whether its standby has it")

// errSilent is the error of a server that stopped in the middle of an answer.
var errSilent = errors.New("the database does not answer")

// lost returns the error of a lease that is not valid.
func lost(id store.ID) error { return fmt.Errorf("%s: %w", id, store.ErrLost) }
