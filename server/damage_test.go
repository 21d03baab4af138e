package server

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	"github.com/rlmhq/rlm/server/internal/access"
)

// damagesVariable is the environment variable for how often the test damages a data folder. By
// default, the test does so a few times.
const damagesVariable = "RLM_DAMAGES"

// filled describes a data folder that contains items of each kind.
type filled struct {
	closed, killed string // the data folders of a server that ended and of one that was killed
	keys           []string
	sessions       []*filledSession
	files, runs    []string
	responses      []string
	owner          map[string]string // the key of each of these items
	audit          []string          // lines of the audit log
	values         map[string]string // the values of all items: see probe
}

// filledSession is a session with snapshots, which map IDs to the value of n.
type filledSession struct {
	id, key   string
	snapshots map[string]string
}

// fillFolder makes a data folder with items of each kind.
func fillFolder(t *testing.T) *filled {
	t.Helper()
	f := &filled{closed: t.TempDir(), owner: map[string]string{}}
	s := start(t, f.closed, counting(t), damageOptions)
	for _, name := range []string{"alice", "bob"} {
		f.keys = append(f.keys, s.key(access.Key{Name: name}))
	}
	for i := range 3 {
		for _, key := range f.keys {
			id := s.upload(key, strings.Repeat(fmt.Sprintf("file %d ", i), 1+2_000*i*i))
			f.files, f.owner[id] = append(f.files, id), key
			f.addSession(s, i, key, id)
		}
		key := f.keys[i%2]
		id, _ := s.runToEnd(key)
		f.runs, f.owner[id] = append(f.runs, id), key
		made := s.do("POST", "/v1/responses", key, object{"model": "rlm/default", "input": fmt.Sprint("hi ", i)})
		id = s.text(made, "id")
		f.responses, f.owner[id] = append(f.responses, id), key
	}
	for _, session := range f.sessions {
		s.awaitSaved("/v1/sessions/" + session.id)
	}
	f.killed = leftBy(t, f.closed)
	s.stop()
	audit, err := os.ReadFile(filepath.Join(f.killed, access.AuditFile))
	if err != nil {
		t.Fatal(err)
	}
	f.audit = strings.SplitAfter(string(audit), "\n")
	return f
}

func damageOptions(o *Options) {
	locked(o)
	o.Rest = time.Millisecond
}

// addSession adds a session with contexts of each kind, and snapshots.
func (f *filled) addSession(s *tested, i int, key, file string) {
	s.Helper()
	path := s.open(key, object{"name": fmt.Sprint("session-", i), "contexts": []object{
		{"name": "text", "text": strings.Repeat("text ", 10+1_000*i)},
		{"name": "number", "value": i},
		{"name": "file", "file": file},
	}})
	session := &filledSession{path[len("/v1/sessions/"):], key, map[string]string{}}
	for n := range i + 1 {
		source := fmt.Sprintf("n = %d; large = str(n) * %d; n", n, 1_000*i+1)
		s.exec(path, key, source, fmt.Sprint(n))
		if n < i {
			taken := s.do("POST", path+"/snapshots", key, nil)
			s.want(taken, 200, "snap_")
			session.snapshots[s.text(taken, "id")] = fmt.Sprint(n)
		}
	}
	f.sessions = append(f.sessions, session)
}

// These states replace the value of an item that could not be read.
const (
	itemTold = "\x00told"  // an error reports that the item is damaged or lost
	itemGone = "\x00gone " // there was another error
)

// valueOf returns the body of an answer, or the state of the item.
func valueOf(got answer) string {
	switch {
	case got.status >= 400 && (strings.Contains(got.body, `damaged`) || strings.Contains(got.body, "is lost")):
		return itemTold
	case got.status >= 400:
		return fmt.Sprint(itemGone, got.status, got.body)
	case strings.Contains(got.body, `,"damaged":true}`), strings.Contains(got.body, "are damaged on the server's disk"):
		return itemTold
	}
	return got.body
}

// probe requests all items, and returns their values by names that begin with the item's ID.
func (f *filled) probe(s *tested, dir string) map[string]string {
	s.Helper()
	all := map[string]string{}
	for i, key := range f.keys {
		all[[]string{"alice", "bob"}[i]+" key"] = fmt.Sprint(s.do("GET", "/v1/models", key, nil).status)
		all["spending "+strconv.Itoa(i)] = valueOf(s.do("GET", "/v1/usage", key, nil))
	}
	for _, id := range f.files {
		all[id+" content"] = valueOf(s.do("GET", "/v1/files/"+id+"/content", f.owner[id], nil))
	}
	for _, session := range f.sessions {
		f.probeSession(s, session, all)
	}
	for _, id := range f.runs {
		all[id+" answer"] = s.answerOf("/v1/runs/"+id, f.owner[id])
		all[id+" events"] = valueOf(s.do("GET", "/v1/runs/"+id+"/events", f.owner[id], nil))
		all[id+" context"] = s.contextOf(id)
	}
	for _, id := range f.responses {
		all[id+" response"] = valueOf(s.do("GET", "/v1/responses/"+id, f.owner[id], nil))
	}
	s.probeRunLogs(dir, f.runs, all)

	now, _ := os.ReadFile(filepath.Join(dir, access.AuditFile)) // it may be missing
	all[access.AuditFile+" lines"] = fmt.Sprint(!slices.ContainsFunc(f.audit, func(line string) bool {
		return !bytes.Contains(now, []byte(line))
	}))
	return all
}

// answerOf returns the answer of a run.
func (s *tested) answerOf(path, key string) string {
	got := s.do("GET", path, key, nil)
	if got.status != 200 {
		return valueOf(got)
	}
	return fmt.Sprint(s.text(got, "answer"), s.text(got, "status"))
}

// contextOf reads the context of a run from the data folder, because no request returns it.
func (s *tested) contextOf(id string) string {
	file, err := s.server.manager.Contents.File(s.Context(), "runs/"+id+"/contexts/0")
	if errors.Is(err, damage.Err) {
		return itemTold
	} else if err != nil {
		return itemGone + err.Error()
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	return fmt.Sprint(string(data), err)
}

func (f *filled) probeSession(s *tested, session *filledSession, all map[string]string) {
	path := "/v1/sessions/" + session.id
	got := s.do("POST", path+"/exec", session.key, object{"source": "n, len(large), len(text), number, len(file)"})
	value := valueOf(got)
	if got.status == 200 {
		value = s.text(got, "echo")
		if s.field(got, "lost") != nil {
			value = itemTold
		}
	}
	all[session.id+" variables"] = value
	list := s.do("GET", path+"/snapshots", session.key, nil).body
	all[session.id+" list"] = strconv.Itoa(strings.Count(list, `"snap_`))
	for id := range session.snapshots {
		all[id+" "+session.id] = valueOf(s.do("GET", path+"/snapshots/"+id, session.key, nil))
	}
}

// probeRunLogs adds a digest of each run log to all.
func (s *tested) probeRunLogs(dir string, runs []string, all map[string]string) {
	runLogs, err := sqlitestore.OpenReadOnly(Folder(dir).Store())
	if err != nil {
		s.Error(err)
		return
	}
	defer runLogs.Close()
	for _, id := range runs {
		entries, err := runLogs.Entries(s.Context(), store.ID{Kind: store.Run, Name: id}, store.Query{})
		sum := sha256.New()
		for i := 0; i < len(entries) && err == nil; i++ {
			_, _ = fmt.Fprintf(sum, "%q %q %q", entries[i].Kind, entries[i].Key, entries[i].Data)
			if entries[i].Digest != "" {
				var content []byte
				content, err = runLogs.Blob(s.Context(), entries[i].Digest)
				_, _ = sum.Write(content)
			}
		}
		switch {
		case err == nil:
			all[id+" run log"] = fmt.Sprintf("%x", sum.Sum(nil))
		case errors.Is(err, damage.Err):
			all[id+" run log"] = itemTold
		default:
			all[id+" run log"] = itemGone + err.Error()
		}
	}
}

// harms are the ways to damage a file.
var harms = []string{"flip", "cut", "zero", "delete"}

// harmFile damages a file and returns the original bytes of the damaged pages.
func harmFile(t *testing.T, random *rand.Rand, path, how string) (lost []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := random.IntN(max(len(data), 1))
	end := len(data)
	switch {
	case how == "delete" || len(data) == 0:
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return data
	case how == "flip":
		end = at + 1
	case how == "zero":
		end = min(at+1<<(3+random.IntN(11)), len(data))
	}

	begin, last := at/4096*4096, min((end+4095)/4096*4096, len(data)) // whole pages
	lost = bytes.Clone(data[begin:last])
	changed := bytes.Clone(data)
	switch how {
	case "flip":
		changed[at] ^= 1 << random.IntN(8)
	case "cut":
		changed = changed[:at]
	case "zero":
		clear(changed[at:end])
	}
	if bytes.Equal(changed, data) { // the bytes were zero already
		return nil
	}
	if err := os.WriteFile(path, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	return lost
}

// kindOf returns the kind of a file in a data folder, or "" for a file that the test does not
// damage.
func kindOf(name string) string {
	parts := strings.Split(filepath.ToSlash(name), "/")
	switch last := parts[len(parts)-1]; {
	case name == "lock" || strings.HasSuffix(last, "-lock") || strings.Contains(name, "/locks/"):
		return ""
	case parts[0] == "records" || last == "store.db":
		return "database"
	case strings.HasPrefix(last, "store.db-"):
		return "database"
	case parts[0] == "store":
		return "state of a run"
	case parts[0] == "files":
		return "upload"
	case last == "state":
		return "session"
	case strings.Contains(name, "/snapshots/"):
		return "snapshot"
	case strings.Contains(name, "/contexts/"):
		return "context"
	case last == "events.jsonl":
		return "events"
	}
	return "audit log"
}

// filesOf lists the files in a data folder by kind.
func filesOf(t *testing.T, dir string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if kind := kindOf(name); kind != "" {
			all[kind] = append(all[kind], name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// damageCount counts the results for damaged files of a kind.
type damageCount struct{ tries, hit, told, wrong, silent, unserved int }

func (c *damageCount) add(other *damageCount) {
	c.tries += other.tries
	c.hit += other.hit
	c.told += other.told
	c.wrong += other.wrong
	c.silent += other.silent
	c.unserved += other.unserved
}

// TestADamagedDataFolderIsServed damages a file in a data folder and starts a server. It checks
// that each item is right, or that the client or the log reports its damage, and that items outside
// the file are served. After rlm store check --repair, the folder must be intact, and missing items
// must have been reported.
func TestADamagedDataFolderIsServed(t *testing.T) {
	tries := 10
	if testing.Short() {
		tries = 3
	}
	if text := os.Getenv(damagesVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		tries = n
	}
	f := fillFolder(t)
	f.values = f.probeOnce(t, leftBy(t, f.closed))
	if again := f.probeOnce(t, leftBy(t, f.killed)); !maps.Equal(f.values, again) {
		for name, value := range f.values {
			if again[name] != value {
				t.Errorf("after a kill %s is %.200q, not %.200q", name, again[name], value)
			}
		}
	}
	if t.Failed() {
		return
	}

	var mu sync.Mutex
	counts := map[string]*damageCount{}
	t.Run("tries", func(t *testing.T) {
		for i := range tries {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				kind, one := f.try(t, i)
				mu.Lock()
				defer mu.Unlock()
				if counts[kind] == nil {
					counts[kind] = &damageCount{}
				}
				one.tries = 1
				counts[kind].add(&one)
			})
		}
	})
	reportDamage(t, counts)
}

func reportDamage(t *testing.T, counts map[string]*damageCount) {
	t.Helper()
	var table strings.Builder
	sum := damageCount{}
	row := func(kind string, c *damageCount) {
		_, _ = fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d | %d |\n",
			kind, c.tries, c.hit, c.told, c.wrong, c.silent, c.unserved)
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		row(kind, counts[kind])
		sum.add(counts[kind])
	}
	row("all", &sum)
	t.Logf("each time one file was damaged, and all items were asked for twice\n\n"+
		"| damaged | times | items hit | said so | wrong values | silent losses | whole, not served |\n"+
		"| --- | --- | --- | --- | --- | --- | --- |\n%s", &table)
}

func (f *filled) probeOnce(t *testing.T, dir string) map[string]string {
	t.Helper()
	s := start(t, dir, counting(t), damageOptions)
	defer s.stop()
	return f.probe(s, dir)
}

// try damages a file once.
func (f *filled) try(t *testing.T, i int) (kind string, c damageCount) {
	t.Helper()
	random := rand.New(rand.NewPCG(uint64(i), 11))
	dir := leftBy(t, []string{f.closed, f.killed}[i%2])
	byKind := filesOf(t, dir)
	kinds := slices.Sorted(maps.Keys(byKind))
	kind = kinds[i/2%len(kinds)]
	name := byKind[kind][random.IntN(len(byKind[kind]))]
	how := harms[random.IntN(len(harms))]
	lost := harmFile(t, random, filepath.Join(dir, name), how)
	what := fmt.Sprintf("%s of %s", how, name)

	found, err := Folder(dir).Check(t.Context(), false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return kind, c
	}
	s := start(t, dir, counting(t), damageOptions)
	now := f.probe(s, dir)
	told := s.logs.String()
	for i := range found.Findings {
		if found.Findings[i].What == access.AuditFile { // no request reads the log
			told += found.Findings[i].String() + "\n"
		}
	}
	if i%3 == 0 {
		f.wayOut(s, what, now)
	}
	s.stop()
	hit := f.judge(t, what, name, lost, now, told, &c)
	if hit > 0 && found.IsWhole() {
		t.Errorf("%s: %d items are not what they were, and the check finds nothing", what, hit)
	}

	repaired, err := Folder(dir).Check(t.Context(), true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return kind, c
	}
	for i := range repaired.Findings {
		told += repaired.Findings[i].String() + "\n"
	}
	again, err := Folder(dir).Check(t.Context(), false, slog.New(slog.DiscardHandler))
	if err != nil || !again.IsWhole() {
		t.Errorf("%s: after the repair %v are damaged, %v", what, again, err)
	}
	if i%3 != 0 { // the folder has not changed since
		s = start(t, dir, counting(t), damageOptions)
		f.judge(t, what+", repaired", name, lost, f.probe(s, dir), told, &c)
		s.stop()
	}
	return kind, c
}

// judge compares items with their originals, and returns how many differ.
func (f *filled) judge(
	t *testing.T, what, name string, lost []byte, now map[string]string, told string, c *damageCount,
) (hit int) {
	t.Helper()
	isDatabase := kindOf(name) == "database"
	isPart := strings.HasSuffix(name, "serve.db") && len(lost) > 0 && len(lost) <= 20_000 // of the database
	isAnyOld := strings.Contains(told, "any row may be older") || strings.Contains(told, "the database is missing") ||
		strings.Contains(told, "rows that nothing names")
	for item, want := range f.values {
		got, id := now[item], strings.Fields(item)[0]
		other := strings.TrimPrefix(item, id+" ")
		if got == want {
			continue
		}
		hit++
		c.hit++
		isNamed := strings.Contains(told, id) || strings.Contains(told, "spending: ") && id == "spending" || isAnyOld
		switch {
		case got == itemTold || isNamed:
			c.told++
		case strings.HasPrefix(got, itemGone) || got == "":
			c.silent++
			t.Errorf("%s: %s is lost, and nothing says so: %.200q\n%s", what, item, got, told)
			continue
		default:
			c.wrong++
			t.Errorf("%s: %s is %.200q, not %.200q", what, item, got, want)
			continue
		}

		isHere := strings.Contains(name, id) || strings.Contains(name, other) || // the item's file
			isDatabase && (!isPart || bytes.Contains(lost, []byte(id)) || id == "spending") ||
			strings.HasPrefix(name, "store"+string(filepath.Separator)) && other == "run log" ||
			other == "variables" && strings.HasPrefix(name, "files") // a context shares the file
		if !isHere && !f.shares(name, id) {
			c.unserved++
			t.Errorf("%s: %s is whole, and not served: %.200q\n%s", what, item, got, told)
		}
	}
	return hit
}

// shares reports whether a file is shared with a context, or is the upload from which it was made.
func (f *filled) shares(name, id string) bool {
	return strings.HasPrefix(id, "file-") && strings.HasSuffix(filepath.ToSlash(name), "/contexts/2")
}

// wayOut restores the last snapshot of damaged sessions, or resets them.
func (f *filled) wayOut(s *tested, what string, now map[string]string) {
	s.Helper()
	for _, session := range f.sessions {
		path := "/v1/sessions/" + session.id
		got := s.do("POST", path+"/exec", session.key, object{"source": "1"})
		if got.status != 409 || !strings.Contains(got.body, "damaged") {
			continue
		}
		restored := false
		for id, n := range session.snapshots {
			if now[id+" "+session.id] == itemTold {
				continue
			}
			s.want(s.do("POST", path+"/snapshots/"+id+"/restore", session.key, nil), 200, session.id)
			s.exec(path, session.key, "n", n)
			restored = true
			break
		}
		if !restored {
			s.want(s.do("POST", path+"/reset", session.key, nil), 200, session.id)
			got := s.do("POST", path+"/exec", session.key, object{"source": "'n' in globals()"})
			if s.text(got, "echo") != "False" || s.field(got, "lost") == nil {
				s.Errorf("%s: after a reset, %s", what, got.body)
			}
		}
	}
}

// awaitSaved waits until a session has been saved.
func (s *tested) awaitSaved(path string) {
	s.Helper()
	for {
		var unsaved int
		err := s.server.db.QueryRowContext(s.Context(), `SELECT unsaved FROM sessions WHERE id = ?`,
			strings.TrimPrefix(path, "/v1/sessions/")).Scan(&unsaved)
		if err != nil {
			s.Fatal(err)
		}
		if unsaved == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
