package tablesql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/ioutil"
	"github.com/ncruces/go-sqlite3/vfs/readervfs"
	"golang.org/x/sync/semaphore"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// engine is SQLite, with the files that it may read, and the disk space for sorting.
type engine struct {
	*sqlite3.Conn

	memory *memory
	files  []string // their names in readervfs
	disk   *spill
}

// sortShare is the divisor for the part of the memory that a sort fills before it writes to the
// disk. Its buffer doubles, so the sort needs up to three times as much.
const sortShare = 4

// turn bounds the number of engines in this process at the same time.
var turn = semaphore.NewWeighted(int64(max(2, runtime.NumCPU())))

// withEngine calls use with an engine without tables, with the given memory and disk in bytes. A
// panic of the engine becomes an error.
func withEngine(ctx context.Context, memory, disk int64, use func(e *engine) error) (err error) {
	if err := turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer turn.Release(1)

	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the memory may be taken away
	defer func() {
		if p := recover(); p != nil {
			err = asError(p)
		}
	}()
	e, err := openEngine(ctx, memory, disk)
	if err != nil {
		return err
	}
	defer e.close()
	return use(e)
}

// errEngine reports an engine that failed unexpectedly.
var errEngine = errors.New("SQLite has failed")

// asError returns the error for a panic of the engine, which panics when it has no more memory. A
// damaged database may also make it read beyond its memory, as may names longer than the engine's
// package expects.
func asError(p any) error {
	err, isError := p.(error)
	if !isError {
		panic(p)
	}
	if strings.Contains(err.Error(), "out of memory") {
		return sqlite3.NOMEM
	}
	return fmt.Errorf("%w: %w", errEngine, err)
}

// openEngine starts an engine: see withEngine.
func openEngine(ctx context.Context, memory, disk int64) (*engine, error) {
	e := &engine{disk: newSpill(disk)}
	db, err := sqlite3.OpenContext(sqlite3.WithMaxMemory(ctx, memory), "file::memory:?vfs="+e.disk.name)
	if err != nil {
		e.disk.forget()
		return nil, fmt.Errorf("cannot start SQLite: %w", err)
	}
	e.Conn = db
	if e.memory, err = watchMemory(ctx, db); err != nil {
		e.disk.forget()
		return nil, errors.Join(err, db.Close())
	}

	db.SetInterrupt(ctx)
	kibibytes := strconv.FormatInt(memory/sortShare>>10, 10)
	err = db.Exec("PRAGMA temp_store = FILE; PRAGMA cache_size = -" + kibibytes + "; PRAGMA cell_size_check = ON")
	if err == nil {
		db.HardHeapLimit(memory - 4<<20)
		_, err = db.Config(sqlite3.DBCONFIG_TRUSTED_SCHEMA, false)
	}
	if err == nil { // views of a database use them, too
		err = replaceFunctions(db)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// lastFile numbers the files of all engines.
var lastFile atomic.Int64

// attach attaches a file under the name of a schema.
func (e *engine) attach(schema string, file *bigtext.Text) error {
	name := "rlm-" + strconv.FormatInt(lastFile.Add(1), 10)
	readervfs.Create(name, ioutil.NewSizeReaderAt(io.NewSectionReader(file, 0, file.Size())))
	e.files = append(e.files, name)

	place := url.URL{Scheme: "file", Opaque: name, RawQuery: "vfs=reader&mode=ro&immutable=1"}
	return e.Exec("ATTACH " + sqlite3.Quote(place.String()) + " AS " + quoteName(schema))
}

// close frees the memory and the files of an engine, even after a panic in it.
func (e *engine) close() {
	defer e.disk.forget()
	defer func() {
		for _, name := range e.files {
			readervfs.Delete(name)
		}
	}()
	if !e.memory.drop() {
		defer func() { _ = recover() }() // the engine is discarded anyway
		_ = e.Close()                    // nothing was written
	}
}
