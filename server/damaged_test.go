package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/records"
)

// flipIn flips a bit of a file, at two thirds of its length.
func flipIn(t *testing.T, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)*2/3] ^= 4
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestADamagedSessionHasAWayOut flips a bit of a saved state. It checks that the session reports
// the damage, and continues from a snapshot or, as the next result reports, without variables. A
// session whose state is missing must start without it, and report that, too.
func TestADamagedSessionHasAWayOut(t *testing.T) {
	dir := t.TempDir()
	saved := func(o *Options) { o.Rest = time.Millisecond }
	s := start(t, dir, counting(t), saved)
	path := s.open("", object{})
	id := path[len("/v1/sessions/"):]
	s.exec(path, "", "n = 41; n", "41")
	snapshot := s.text(s.do("POST", path+"/snapshots", "", nil), "id")
	s.exec(path, "", "n += 1; n", "42")

	state := filepath.Join("sessions", id, "state")
	restart := func(change func()) {
		t.Helper()
		s.awaitSaved(path)
		s.stop()
		change()
		s = start(t, dir, counting(t), saved)
	}
	restart(func() { flipIn(t, dir, state) })
	for range 2 {
		got := s.do("POST", path+"/exec", "", object{"source": "n"})
		s.want(got, 409, `"code":"damaged"`)
		for _, advice := range []string{
			path + "/snapshots/" + snapshot + "/restore", path + "/reset", "not what was written",
		} {
			s.want(got, 409, advice)
		}
	}
	s.want(s.do("GET", path+"/variables", "", nil), 200, `"name":"n"`)
	s.want(s.do("GET", path+"/snapshots/"+snapshot, "", nil), 200, "rlm-snapshot")
	s.want(s.do("POST", path+"/snapshots/"+snapshot+"/restore", "", nil), 200, id)
	if got := s.exec(path, "", "n", "41"); s.field(got, "lost") != nil {
		t.Errorf("something is lost: %s", got.body)
	}

	restart(func() { flipIn(t, dir, state) })
	s.want(s.do("POST", path+"/exec", "", object{"source": "n"}), 409, "damaged")
	s.want(s.do("POST", path+"/reset", "", nil), 200, id)
	s.stop() // before a result reports the loss
	s = start(t, dir, counting(t), saved)
	got := s.exec(path, "", "'n' in globals()", "False")
	s.want(got, 200, `"reason":"The session began again without its variables, because a client asked`)
	if got := s.exec(path, "", "n = 7; n", "7"); s.field(got, "lost") != nil {
		t.Errorf("the loss is said twice: %s", got.body)
	}

	restart(func() {
		if err := os.Remove(filepath.Join(dir, state)); err != nil {
			t.Fatal(err)
		}
	})
	if !strings.Contains(s.logs.String(), id+"/state") || !strings.Contains(s.logs.String(), "rlm store check") {
		t.Errorf("the log does not name the missing state, and what to run: %s", s.logs)
	}
	got = s.exec(path, "", "'n' in globals()", "False")
	s.want(got, 200, `"reason":"The saved variables of the session are missing`)

	flipIn(t, dir, "sessions", id, "snapshots", snapshot)
	s.want(s.do("POST", path+"/snapshots/"+snapshot+"/restore", "", nil), 410, "restore another one")
	s.want(s.do("GET", path+"/snapshots/"+snapshot, "", nil), 410, `"code":"damaged"`)
	s.exec(path, "", "1", "1")
}

// TestADamagedContextCanBeSentAgain checks that the session's variables are then intact.
func TestADamagedContextCanBeSentAgain(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	path := s.open("", object{"contexts": []object{{"name": "log", "text": hay}, {"name": "number", "value": 7}}})
	s.exec(path, "", "n = log.count('needle') + number; n", "207")
	s.stop()
	for _, context := range []string{"0", "1"} {
		flipIn(t, dir, "sessions", path[len("/v1/sessions/"):], "contexts", context)
	}

	s = start(t, dir, counting(t), nil)
	s.want(s.do("POST", path+"/exec", "", object{"source": "n"}), 410, "PUT "+path+"/contexts/")
	s.want(s.do("PUT", path+"/contexts/0", "", object{"text": "other"}), 409, "other_content")
	s.want(s.do("PUT", path+"/contexts/0", "", object{"text": hay}), 200, `"name":"log"`)
	s.want(s.do("POST", path+"/exec", "", object{"source": "n"}), 410, "contexts/1")
	s.want(s.do("PUT", path+"/contexts/1", "", object{"value": 7}), 200, "number")
	if got := s.exec(path, "", "n, len(log), number", "(207, 2200, 7)"); s.field(got, "lost") != nil {
		t.Errorf("something is lost: %s", got.body)
	}
	for bad, status := range map[string]int{"2": 404, "-1": 404, "x": 400} {
		s.want(s.do("PUT", path+"/contexts/"+bad, "", object{"text": hay}), status, "context")
	}
}

// TestADamagedUploadIsRefused also damages an upload while the server runs, after a first read.
func TestADamagedUploadIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	first, second := s.upload("", "the first file"), s.upload("", "the second file")
	third := s.upload("", "the third file")
	s.want(s.do("GET", "/v1/files/"+first+"/content", "", nil), 200, "the first file")
	flipIn(t, dir, "files", first)
	if err := os.Remove(filepath.Join(dir, "files", second)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{first, second} {
		s.want(s.do("GET", "/v1/files/"+id+"/content", "", nil), 410, "upload it again")
		body := object{"question": "how many?", "contexts": []object{{"file": id}}}
		if got := s.do("POST", "/v1/runs", "", body); got.status == 200 {
			run := "/v1/runs/" + s.text(got, "id")
			s.do("GET", run+"/events", "", nil)
			s.want(s.do("GET", run, "", nil), 200, "damaged")
		} else {
			s.want(got, 410, "damaged")
		}
	}
	s.want(s.do("GET", "/v1/files/"+third+"/content", "", nil), 200, "the third file")
}

// TestDamagedEventsAreSaid checks that damage is reported, to an event in the middle and to the end
// of the log.
func TestDamagedEventsAreSaid(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	id, path := s.runToEnd("")
	whole := strings.SplitAfter(s.do("GET", path+"/events", "", nil).body, "\n\n")
	log := filepath.Join(dir, "runs", id, records.EventsFile)
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte{'\n'})
	lines[3][len(lines[3])/2] ^= 1
	if err := os.WriteFile(log, bytes.Join(lines[:len(lines)-2], nil), 0o600); err != nil {
		t.Fatal(err)
	}

	got := strings.SplitAfter(s.do("GET", path+"/events", "", nil).body, "\n\n")
	if len(got) != len(whole) {
		t.Fatalf("%d events of %d: %s", len(got), len(whole), got)
	}
	last := len(whole) - 3 // followed by the last event and an empty string
	for i := range whole {
		isDamaged := strings.Contains(got[i], fmt.Sprintf("Event %d of this run is damaged", i+1))
		if wants := i == 2 || i == last; wants != isDamaged || !isDamaged && got[i] != whole[i] {
			t.Errorf("event %d is %s, not %s", i+1, got[i], whole[i])
		}
	}
	s.want(s.do("GET", path, "", nil), 200, `"answer":"200"`)
}

// TestADamagedDatabaseLosesOnlyItsPage damages the database pages that contain a row, and checks
// that the server starts with all other rows, and reports what was lost.
func TestADamagedDatabaseLosesOnlyItsPage(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), locked)
	key := s.key(access.Key{Name: "alice"})
	var files []string
	for i := range 120 { // more than a page of rows
		files = append(files, s.upload(key, fmt.Sprint("file ", i)))
	}
	path := s.open(key, object{"name": "kept"})
	s.exec(path, key, "n = 1; n", "1")
	s.stop()

	database := records.Path(dir)
	data, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	lost := map[string]bool{}
	for at := 0; at < len(data); at += 4096 { // leaf pages of a table that contain the file's ID
		page := data[at : at+4096]
		if page[0] != 13 || !bytes.Contains(page, []byte("hay.txt")) || !bytes.Contains(page, []byte(files[60])) {
			continue
		}
		for _, id := range files {
			lost[id] = lost[id] || bytes.Contains(page, []byte(id))
		}
		page[2000] ^= 1
	}
	if err := os.WriteFile(database, data, 0o600); err != nil || !lost[files[60]] {
		t.Fatal(lost, err)
	}

	s = start(t, dir, counting(t), locked)
	for i, id := range files {
		got := s.do("GET", "/v1/files/"+id+"/content", key, nil)
		if lost[id] {
			s.want(got, 410, "is lost")
		} else {
			s.want(got, 200, fmt.Sprint("file ", i))
		}
	}
	s.exec(path, key, "n", "1")
	for _, want := range []string{files[60], "rlm store check", "quarantine"} {
		if !strings.Contains(s.logs.String(), want) {
			t.Errorf("the log does not have %q: %.2000s", want, s.logs)
		}
	}
	kept, err := filepath.Glob(filepath.Join(dir, "quarantine", "*", "files", files[60]))
	if err != nil || len(kept) != 1 {
		t.Errorf("the content of a lost file is at %v, %v", kept, err)
	}
}

// TestAFolderWithoutItsDatabaseIsNotEmptied checks that data without a row is kept aside, and that
// the server reports the loss of the keys.
func TestAFolderWithoutItsDatabaseIsNotEmptied(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	path := s.open("", object{})
	s.exec(path, "", "n = 1; n", "1")
	s.stop()
	if err := os.Remove(records.Path(dir)); err != nil {
		t.Fatal(err)
	}

	s = start(t, dir, counting(t), nil)
	s.want(s.do("GET", path, "", nil), 410, "is lost")
	kept, err := filepath.Glob(filepath.Join(dir, "quarantine", "*", "sessions", "sess_*", "state"))
	if err != nil || len(kept) != 1 || !strings.Contains(s.logs.String(), "database is missing") {
		t.Errorf("the state is at %v, %v: %s", kept, err, s.logs)
	}
}

// TestADataFolderHasOneOwner checks that a second server cannot use the folder.
func TestADataFolderHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	_, err := New(t.Context(), s.server.engine, Options{Dir: Folder(dir), Log: s.server.Log})
	var inUse *InUseError
	if !errors.As(err, &inUse) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on ", os.Getpid())) ||
		!strings.Contains(err.Error(), "stop that process first") {
		t.Errorf("a second server: %v", err)
	}
	s.exec(s.open("", object{}), "", "1", "1")
	s.stop()
	claim, err := Folder(dir).Claim(t.Context(), "a test", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Folder(dir).Claim(t.Context(), "another", "")
	if err == nil || !strings.Contains(err.Error(), "a test at 127.0.0.1:1") {
		t.Errorf("a second claim: %v", err)
	}
	if err := claim.Close(); err != nil {
		t.Fatal(err)
	}
}

// slowForm uploads a file whose content arrives in parts.
func (s *tested) slowForm(key string, content io.Reader) answer {
	s.Helper()
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		part, err := form.CreateFormFile("file", "part.bin")
		if err == nil {
			_, err = io.Copy(part, content)
		}
		w.CloseWithError(errors.Join(err, form.Close()))
	}()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.web.URL+"/v1/files", r)
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Content-Type", form.FormDataContentType())
	request.Header.Set("Authorization", "Bearer "+key)
	got, err := s.web.Client().Do(request)
	if err != nil {
		return answer{status: http.StatusRequestEntityTooLarge, body: err.Error()} // the server did not read the rest
	}
	defer got.Body.Close()
	body, _ := io.ReadAll(got.Body)
	return answer{got.StatusCode, got.Header, string(body)}
}

// TestAQuotaHoldsWhileFilesArrive concurrently uploads more than the key's quota, while the tenant
// also has sessions.
func TestAQuotaHoldsWhileFilesArrive(t *testing.T) {
	const quota, size, uploads = 3_000_000, 900_000, 8
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.Open, o.MaxFile, o.MaxBody = false, 4<<20, 4<<20 })
	key := s.key(access.Key{Name: "alice", Limits: access.Limits{Files: quota}})
	path := s.open(key, object{ // whose snippets take no space
		"contexts": []object{{"text": strings.Repeat("x", 100_000)}}, "durability": "idle",
	})

	var mu sync.Mutex
	var all sync.WaitGroup
	accepted := 0
	begin := make(chan struct{})
	for range uploads {
		all.Go(func() {
			<-begin
			got := s.slowForm(key, bytes.NewReader(make([]byte, size)))
			mu.Lock()
			defer mu.Unlock()
			if got.status == 200 {
				accepted++
			} else if got.status != 413 {
				t.Errorf("an upload gets %d %s", got.status, got.body)
			}
		})
	}
	close(begin)
	all.Wait()
	used, err := records.Used(t.Context(), s.server.db, "alice")
	if err != nil || used > quota || accepted == 0 || accepted > quota/size {
		t.Errorf("%d uploads are accepted, and %d of %d bytes are used: %v", accepted, used, quota, err)
	}
	s.exec(path, key, "len(context)", "100000")

	left := quota - used
	file := s.slowForm(key, bytes.NewReader(make([]byte, left)))
	s.want(file, 200, `"bytes":`)
	s.want(s.do("POST", path+"/exec", key, object{"source": "1"}), 200, "")
	s.want(s.slowForm(key, strings.NewReader("x")), 413, "")
	s.want(s.do("POST", path+"/contexts", key, object{"contexts": []object{{"text": "x"}}}), 413, "quota_used_up")
	s.want(s.do("DELETE", "/v1/files/"+s.text(file, "id"), key, nil), 200, "deleted")
	if left > 2_000 {
		s.want(s.do("POST", path+"/contexts", key, object{"contexts": []object{{"text": "x"}}}), 200, "")
	}
	parts, err := os.ReadDir(filepath.Join(string(s.server.Dir), "incoming"))
	if err != nil || len(parts) > 0 {
		t.Errorf("parts of refused uploads are left: %v, %v", parts, err)
	}
}
