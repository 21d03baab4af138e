package server

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
)

// logged returns the number of changes in the log of a session.
func (s *tested) logged(path string) (n int) {
	s.Helper()
	err := s.server.db.QueryRowContext(s.Context(), `SELECT count(*) FROM session_log WHERE session = ?`,
		strings.TrimPrefix(path, "/v1/sessions/")).Scan(&n)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// TestAnsweredRequestsSurviveAKill checks that another server finds the data of a server that was
// killed right after an answer, before a session rested and was saved.
func TestAnsweredRequestsSurviveAKill(t *testing.T) {
	post := func(s *tested, path, source string) {
		s.want(s.do("POST", path+"/exec", "", object{"source": source}), 200, "")
	}
	for name, c := range map[string]struct {
		use    func(s *tested, path string)
		show   string
		logged int // changes in the log, 0 if the state is saved instead
	}{
		"snippets": {func(s *tested, path string) {
			post(s, path, "n = 1")
			post(s, path, "import time, uuid; n += 1; when = time.time(); who = uuid.uuid4()")
			post(s, path, "print(when); raise ValueError(n)")
		}, "n, when, who", 3},
		"no Python at all": {func(s *tested, path string) {
			s.want(s.do("POST", path+"/exec", "", object{"source": "x := 41", "language": "go"}), 200, "")
			s.want(s.do("POST", path+"/exec", "", object{"source": "x++", "language": "go"}), 200, "")
			post(s, path, "x = 6 * 7")
		}, "x", 1}, // the order in Go may differ, so the state is saved
		"threads": {func(s *tested, path string) {
			post(s, path, "import threading, time, random; got = []\n"+
				"def work(i):\n    time.sleep(random.random() / 100)\n"+
				"    got.append((i, time.time()))\n"+
				"ts = [threading.Thread(target=work, args=(i,)) for i in range(5)]\n"+
				"for t in ts: t.start()\nfor t in ts: t.join()")
		}, "got", 1},
		"randomness": {func(s *tested, path string) {
			s.want(s.do("PUT", path+"/variables/a", "", object{"value": 1}), 204, "")
			post(s, path, "import random; a = random.random()")
		}, "a, random.random()", 2},
		"variables": {func(s *tested, path string) {
			s.want(s.do("PUT", path+"/variables/a", "", object{"value": []int{1, 2}}), 204, "")
			s.want(s.do("PUT", path+"/variables/b", "", object{"value": object{"$int": "7"}}), 204, "")
			s.want(s.do("PUT", path+"/variables/c", "", object{"value": 3}), 204, "")
			s.want(s.do("GET", path+"/variables/a", "", nil), 200, "[1,2]")
			s.want(s.do("DELETE", path+"/variables/c", "", nil), 204, "")
			more := object{"source": "a.append(d)", "variables": object{"d": 4}}
			s.want(s.do("POST", path+"/exec", "", more), 200, "")
		}, "a, b, 'c' in globals(), d", 7},
		"a long recording": {func(s *tested, path string) {
			post(s, path, "import time\nlast = [time.perf_counter() for _ in range(200_000)][-1]")
		}, "last", 0},
		"a limit": {func(s *tested, path string) {
			post(s, path, "n = 1\nprint('x' * 20_000_000)\nn = 2")
		}, "n", 0},
		"another context": {func(s *tested, path string) {
			post(s, path, "n = 5")
			s.want(s.do("POST", path+"/contexts", "", object{
				"contexts": []object{{"name": "more", "text": "more text"}},
			}), 200, "")
		}, "n, str(more)", 0},
		"a beginning": {func(s *tested, path string) {
			post(s, path, "n = 5")
			s.want(s.do("POST", path+"/reset", "", nil), 200, "")
			post(s, path, "m = 6")
			post(s, path, "m += 1") // the previous result reported the loss of the variables
		}, "'n' in globals(), m", 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, dir, counting(t), func(o *Options) { o.Rest = time.Hour })

			path := s.open("", object{})
			c.use(s, path)
			if n := s.logged(path); n != c.logged {
				t.Errorf("the log has %d changes, want %d", n, c.logged)
			}

			left := leftBy(t, dir)
			shown := s.do("POST", path+"/exec", "", object{"source": c.show})

			next := start(t, left, counting(t), nil)

			got := next.do("POST", path+"/exec", "", object{"source": c.show})

			want := next.text(shown, "echo")
			if next.text(got, "echo") != want || want == "" || next.field(got, "lost") != nil {
				t.Errorf("%s, want %s", got.body, shown.body)
			}
		})
	}
}

// TestACopyIsKept kills a server after it has forked a session or restored a snapshot.
func TestACopyIsKept(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), func(o *Options) { o.Rest = time.Hour })

	path := s.open("", object{})
	s.exec(path, "", "n = 1; n", "1")
	taken := s.do("POST", path+"/snapshots", "", nil)
	s.exec(path, "", "n = 2; n", "2")

	fork := "/v1/sessions/" + s.text(s.do("POST", path+"/fork", "", object{}), "id")

	s.want(s.do("POST", path+"/snapshots/"+s.text(taken, "id")+"/restore", "", nil), 200, "")

	next := start(t, leftBy(t, dir), counting(t), nil)

	for one, want := range map[string]string{path: "1", fork: "2"} {
		if got := next.exec(one, "", "n", want); next.field(got, "lost") != nil {
			t.Errorf("something is lost: %s", got.body)
		}
	}
}

// TestAnotherDurabilityForgetsTheLog kills a server that has repeated a log but, with durability
// idle, adds nothing to it.
func TestAnotherDurabilityForgetsTheLog(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), func(o *Options) { o.Rest = time.Hour })
	path := s.open("", object{})
	s.exec(path, "", "n = 1; n", "1")

	idle := leftBy(t, dir)
	next := start(t, idle, counting(t), func(o *Options) {
		o.Rest, o.Profiles[0].Durability = time.Hour, "idle"
	})
	next.exec(path, "", "n += 1; n", "2")

	third := start(t, leftBy(t, idle), counting(t), nil)
	if got := third.exec(path, "", "n", "1"); third.field(got, "lost") == nil {
		t.Errorf("the second snippet is lost silently: %s", got.body)
	}
}

// TestARepetitionThatFailsKeepsTheLog checks that a failed read of the log does not lose it.
func TestARepetitionThatFailsKeepsTheLog(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), func(o *Options) { o.Rest = time.Hour })
	path := s.open("", object{})
	s.exec(path, "", "n = 1; n", "1")

	next := start(t, leftBy(t, dir), counting(t), func(o *Options) { o.Rest = time.Hour })
	rename := func(from, to string) {
		if _, err := next.server.db.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
			t.Fatal(err)
		}
	}
	rename("session_log", "away")
	if got := next.do("POST", path+"/exec", "", object{"source": "n"}); got.status < 500 {
		t.Errorf("%d: %s", got.status, got.body)
	}
	rename("away", "session_log")
	if got := next.exec(path, "", "n", "1"); next.field(got, "lost") != nil {
		t.Errorf("something is lost: %s", got.body)
	}
}

// TestTheLogEndsWithASave checks that the log is empty after a save, and that the saved state
// contains its changes.
func TestTheLogEndsWithASave(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), func(o *Options) { o.Rest = time.Millisecond })

	path := s.open("", object{})
	used := func() (bytes int64) {
		err := s.server.db.QueryRowContext(t.Context(), `SELECT bytes FROM sessions`).Scan(&bytes)
		if err != nil {
			t.Fatal(err)
		}

		return bytes
	}

	s.exec(path, "", "n = 1; n", "1")

	if bytes := used(); bytes == 0 {
		t.Error("the log takes no space of the tenant's")
	}

	s.awaitSaved(path)

	n, bytes, saved := s.logged(path), used(), s.do("GET", path, "", nil)
	if n != 0 || bytes <= 0 {
		t.Errorf("%d changes in the log, %d bytes: %s", n, bytes, saved.body)
	}
	s.exec(path, "", "n += 1; n", "2")
	s.want(s.do("GET", path+"/variables", "", nil), 200, `"n"`)

	next := start(t, leftBy(t, dir), counting(t), nil)

	next.want(next.do("GET", path+"/variables", "", nil), 200, `{"name":"n","kind":"int"}`)
	if got := next.exec(path, "", "n", "2"); next.field(got, "lost") != nil {
		t.Errorf("something is lost: %s", got.body)
	}

	next.want(next.do("DELETE", path, "", nil), 204, "")
	if n := next.logged(path); n != 0 {
		t.Errorf("%d changes of a deleted session are there", n)
	}
}

// TestValuesThatNoStateHasAreSavedAround checks a session with a generator, which cannot be saved.
func TestValuesThatNoStateHasAreSavedAround(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), func(o *Options) { o.Rest = time.Hour })

	path := s.open("", object{})
	s.exec(path, "", "g = (i for i in range(9)); next(g)", "0")
	const many = 25 // so that the session is saved
	for range many {
		s.exec(path, "", "1", "1")
	}

	s.exec(path, "", "x = next(g); x", "1")

	next := start(t, leftBy(t, dir), counting(t), nil)
	if got := next.exec(path, "", "x", "1"); next.field(got, "lost") != nil {
		t.Errorf("something is lost: %s", got.body)
	}

	next.want(next.do("GET", path, "", nil), 200, `"left_behind":[{"name":"g"`)
}

// TestARepetitionThatDiffersIsSaid changes the snippets in the log, and checks that the difference
// is reported.
func TestARepetitionThatDiffersIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		first, then string
		want        string // empty if the repetition does not differ
	}{
		"the same":        {"x = 1; x", "x = 1; x", ""},
		"another output":  {"x = 1; x", "x = 2; x", "the snippet \"x = 2; x\": its output or its end"},
		"an exception":    {"x = 1; x", "x = 1; y", "the snippet \"x = 1; y\": its output or its end"},
		"other variables": {"x = 1", "y = 1", "the snippet \"y = 1\": the variables after it"},
		"another reading": {
			"import time; x = 1; x = time.time()", "import time; x = 1; x = 1.0", ": it asked its host for less",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, dir, counting(t), func(o *Options) { o.Rest = time.Hour })

			path := s.open("", object{})
			s.want(s.do("POST", path+"/exec", "", object{"source": c.first}), 200, `"ok"`)
			s.exec(path, "", "z = 5; z", "5")

			next := start(t, leftBy(t, dir), counting(t), nil)
			_, err := next.server.db.ExecContext(t.Context(),
				`UPDATE session_log SET entry = CAST(json_set(entry, '$.source', ?) AS BLOB) WHERE n = 1`,
				base64.StdEncoding.EncodeToString([]byte(c.then)))
			if err != nil {
				t.Fatal(err)
			}

			got := next.exec(path, "", "z", "5")
			lost, _ := next.field(got, "lost", "reason").(string)
			if (lost == "") != (c.want == "") || !strings.Contains(lost, c.want) || strings.Contains(lost, "z = 5") {
				t.Errorf("what differed is not said: %s", got.body)
			}

			third := start(t, leftBy(t, string(next.server.Dir)), counting(t), nil)

			if again := third.exec(path, "", "z", "5"); third.field(again, "lost") != nil {
				t.Errorf("the loss is said twice: %s", again.body)
			}
		})
	}
}

// keptInWorkers kills a server after two snippets, and checks that the next server repeats them.
func keptInWorkers(t *testing.T, options func() rlm.Options) {
	t.Helper()
	dir := t.TempDir()
	s := startWith(t, dir, options(), counting(t), func(o *Options) { o.Rest = time.Hour })

	path := s.open("", object{})
	s.exec(path, "", "import time, random; n = random.random(); when = time.time(); 1", "1")
	s.exec(path, "", "m = random.random(), n; 2", "2")

	if n := s.logged(path); n != 2 {
		t.Errorf("the log has %d changes", n)
	}

	left := leftBy(t, dir)

	want := s.text(s.do("POST", path+"/exec", "", object{"source": "n, when, m"}), "echo")

	next := startWith(t, left, options(), counting(t), nil)
	if got := next.exec(path, "", "n, when, m", want); next.field(got, "lost") != nil || want == "" {
		t.Errorf("something is lost: %s", got.body)
	}
}
