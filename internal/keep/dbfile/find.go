package dbfile

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Findings describes the damage found in a database.
type Findings struct {
	// IsMissing means that the database does not exist or is an empty file.
	IsMissing bool
	// Pages counts all pages, and Damaged the pages that differ from what was written and are in
	// use.
	Pages, Damaged int64
	// LostChanges counts the unreadable changes in the log. IsAnyOld means that the changed pages
	// are unknown, so any row may be older than its last change.
	LostChanges int
	IsAnyOld    bool

	isLogDamaged bool
	isOnlyLog    bool // the file is missing, but the log exists
	// Rows counts the intact rows, by table.
	Rows map[string]int
	// Lost contains the rows known to be damaged. Old contains rows in their state before a change
	// that is missing from the log.
	Lost, Old []LostRow
	// AreMoreLost means that other rows may be lost without a trace.
	AreMoreLost bool
	// HasNoSums means that the database was written by an earlier version, without checksums.
	HasNoSums bool
}

// LostRow is the remainder of a row: its values in the indexes, and its first values.
type LostRow struct {
	Table  string
	Rowid  int64
	Values map[string]any // by columns: int64, float64, string or []byte
}

// String returns the table and the known values of the row, such as "sessions: id sess_x, name
// triage".
func (r *LostRow) String() string {
	var values []string
	for _, column := range slices.Sorted(maps.Keys(r.Values)) {
		switch v := r.Values[column].(type) {
		case []byte: // not for display
		case string:
			values = append(values, fmt.Sprintf("%s %.80q", column, v))
		default:
			values = append(values, fmt.Sprintf("%s %v", column, v))
		}
	}
	return r.Table + ": " + strings.Join(values, ", ")
}

// IsWhole reports whether the database is undamaged.
func (f *Findings) IsWhole() bool {
	return !f.IsMissing && !f.isOnlyLog && f.Damaged == 0 && !f.isLogDamaged && len(f.Lost) == 0 && !f.AreMoreLost
}

// String describes the damage in a sentence.
func (f *Findings) String() string {
	switch {
	case f.IsMissing:
		return "the database is missing"
	case f.isOnlyLog:
		return "the database is missing, and the log beside it is there"
	case f.IsAnyOld:
		return fmt.Sprintf("its log lacks %d changes of pages: any row may be older than it was", f.LostChanges)
	case f.isLogDamaged && f.LostChanges > 0:
		return fmt.Sprintf("its log lacks the last changes of %d pages", f.LostChanges)
	case f.isLogDamaged:
		return "its log is damaged"
	case f.Damaged > 0:
		return fmt.Sprintf("%d of %d pages are not what was written", f.Damaged, f.Pages)
	case !f.IsWhole():
		return "some rows are not what was written"
	}
	return "it is whole"
}

// Find looks for damage in a database that no process is using. The argument tables is a database,
// possibly empty, with the tables that the checked one must have.
func Find(path string, tables *sqlite3.Conn) (*Findings, error) {
	s, err := openScan(path, tables)
	if err != nil {
		return nil, err
	}
	defer s.pages.close()
	return s.find(func(*table, cell) error { return nil })
}

// Salvage copies the intact rows of a damaged database to another database, which has the tables
// but no rows. It does not change the damaged database, which no process may be using.
func Salvage(path string, into *sqlite3.Conn) (*Findings, error) {
	s, err := openScan(path, into)
	if err != nil {
		return nil, err
	}
	defer s.pages.close()
	// A salvaged row may refer to a row that no longer exists.
	if err := into.Exec("PRAGMA foreign_keys = OFF; BEGIN"); err != nil {
		return nil, err
	}

	insert := newInserts(into)
	found, err := s.find(insert.add)
	err = firstOf(err, insert.close())
	if err != nil {
		return nil, firstOf(err, into.Exec("ROLLBACK"))
	}
	return found, into.Exec("COMMIT")
}

// scan is a search for damage in a database.
type scan struct {
	pages  *pages
	log    *writeLog
	schema *schema

	found   *Findings
	whole   map[string]map[int64]bool // intact rows, by table
	lost    map[string]map[int64]map[string]any
	damaged []int64 // pages
}

func newScan(tables *schema) *scan {
	return &scan{
		schema: tables, whole: map[string]map[int64]bool{}, lost: map[string]map[int64]map[string]any{},
		found: &Findings{Rows: map[string]int{}},
	}
}

// openScan opens a scan for the tables of a database.
func openScan(path string, tables *sqlite3.Conn) (*scan, error) {
	known, err := readSchema(tables)
	if err != nil {
		return nil, err
	}
	s := newScan(known)
	err = s.open(path)
	return s, err
}

func (s *scan) open(path string) (err error) {
	s.pages, s.log, err = openPages(path)
	return err
}

// find checks all pages, and calls take with each intact row.
func (s *scan) find(take func(*table, cell) error) (*Findings, error) {
	f := s.found
	f.Pages, f.HasNoSums = s.pages.count, !s.pages.hasSums
	f.isLogDamaged, f.LostChanges = s.log.isDamaged(), s.log.lost()
	f.IsAnyOld = f.isLogDamaged && !s.pages.isAllKnown
	f.isOnlyLog = s.pages.inFile == 0 && s.pages.count > 0
	if s.pages.count == 0 {
		f.IsMissing = true
		return f, nil
	}

	free, isFreeKnown := s.freePages()
	for n := int64(1); n <= s.pages.count; n++ {
		if n == pendingPage || free[n] {
			continue
		}
		page, err := s.pages.page(n)
		if err != nil {
			s.damaged = append(s.damaged, n)
			continue
		}
		if kind, _ := treeHead(page, n); n == 1 || kind != tableLeaf {
			continue
		}
		if err := s.rows(page, n, take); err != nil {
			return nil, err
		}
	}
	if err := s.findOld(take); err != nil {
		return nil, err
	}

	isWalked := s.walk()
	s.conclude(isWalked && isFreeKnown)
	return f, nil
}

// pendingPage is a page that SQLite never uses, because it locks bytes there.
const pendingPage = 1<<30/pageSize + 1

// rows passes the rows of a leaf to take. Deleted rows are overwritten, so each leaf belongs to a
// table.
func (s *scan) rows(page []byte, n int64, take func(*table, cell) error) (failed error) {
	err := s.pages.cells(page, n, func(c cell) {
		t := s.schema.find(c.values)
		switch {
		case failed != nil:
			return
		case c.isCut:
			s.noteCut(&c)
			return
		case t == nil: // a table of SQLite itself
			return
		}
		if s.whole[t.name] == nil {
			s.whole[t.name] = map[int64]bool{}
		}
		if !s.whole[t.name][c.rowid] {
			s.whole[t.name][c.rowid] = true
			s.found.Rows[t.name]++
			failed = take(t, c)
		}
	})
	if err != nil { // without a checksum, a page may contain anything
		s.damaged = append(s.damaged, n)
	}
	return failed
}

// findOld collects rows from pages whose last change is lost. That change may have altered or
// deleted any of these rows.
func (s *scan) findOld(take func(*table, cell) error) error {
	for n, place := range s.pages.logged {
		page, isWhole := s.pages.old(n)
		if place != lostFrame || !isWhole {
			continue
		}
		if kind, _ := treeHead(page, n); n == 1 || kind != tableLeaf {
			continue
		}
		err := s.rows(page, n, func(t *table, c cell) error {
			s.found.Old = append(s.found.Old, LostRow{t.name, c.rowid, t.values(&c)})
			return take(t, c)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// noteCut records a row of which only the first values are available.
func (s *scan) noteCut(c *cell) {
	for _, t := range s.schema.tables {
		if len(c.values) > 0 && len(c.values) < len(t.columns) && t.holds(c.values) {
			s.addLost(t.name, c.rowid, t.columnNames(), c.values)
			return
		}
	}
	s.found.AreMoreLost = true
}

func (s *scan) addLost(table string, rowid int64, columns []string, values []any) {
	rows := s.lost[table]
	if rows == nil {
		rows = map[int64]map[string]any{}
		s.lost[table] = rows
	}

	if rows[rowid] == nil {
		rows[rowid] = map[string]any{}
	}
	for i := range min(len(columns), len(values)) {
		if values[i] != nil {
			rows[rowid][columns[i]] = values[i]
		}
	}
}

// freePages returns the unused pages, and whether it found all of them.
func (s *scan) freePages() (free map[int64]bool, isWhole bool) {
	free = map[int64]bool{}
	head, ok := s.pages.head()
	if !ok {
		return free, false
	}

	for n := int64(binary.BigEndian.Uint32(head[32:])); n != 0; {
		page, err := s.pages.page(n)
		if err != nil || free[n] {
			return free, false
		}
		free[n] = true
		count := int(binary.BigEndian.Uint32(page[4:]))
		if count > s.pages.usableSize()/4-2 {
			return free, false
		}
		for i := range count {
			free[int64(binary.BigEndian.Uint32(page[8+4*i:]))] = true
		}
		n = int64(binary.BigEndian.Uint32(page))
	}
	return free, true
}

// conclude determines what is damaged and what is lost. A page without references does not matter,
// provided that all references could be read.
func (s *scan) conclude(areUsesKnown bool) {
	for _, n := range s.damaged {
		if s.pages.used[n] || !areUsesKnown {
			s.found.Damaged++
		}
	}

	for _, t := range s.schema.tables {
		for _, rowid := range slices.Sorted(maps.Keys(s.lost[t.name])) {
			if !s.whole[t.name][rowid] {
				s.found.Lost = append(s.found.Lost, LostRow{t.name, rowid, s.lost[t.name][rowid]})
			}
		}
	}
}
