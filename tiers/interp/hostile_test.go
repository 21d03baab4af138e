package interp_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// outcomes that a hostile snippet may have: of several, any.
const (
	rejected = "rejected"
	ok       = string(tiers.StatusOK)
	raised   = string(tiers.StatusRaised)
	limited  = string(tiers.StatusLimit)
	crashed  = string(tiers.StatusCrashed)
)

// hostile are snippets that attack the tier, and what may come of them.
var hostile = []struct {
	name, source string
	may          []string
	python       bool
}{
	{name: "sentinel errors", source: "import \"io\"\nio.EOF = nil", may: []string{ok}},
	{name: "sentinel by pointer", source: "import \"io\"\np := &io.EOF\n*p = nil", may: []string{ok, rejected}},
	{name: "standard tables", source: "import \"unicode\"\nunicode.Latin = nil", may: []string{ok}},
	{name: "default encodings", source: "import \"encoding/base64\"\n*base64.StdEncoding = base64.Encoding{}", may: []string{ok, raised, rejected}},
	{name: "goroutine leak", source: "for i := 0; i < 5000; i++ {\n\tgo func() { select {} }()\n}", may: []string{ok}},
	{name: "busy goroutines", source: "for i := 0; i < 4; i++ {\n\tgo func() { for {} }()\n}", may: []string{ok, limited}},
	{name: "stack overflow", source: "func f(n int) int { return f(n+1) + 1 }\nf(0)", may: []string{crashed, limited}},
	{name: "mutual recursion", source: "func a() { b() }\nfunc b() { a() }\na()", may: []string{crashed, limited}},
	{name: "huge slice", source: "b := make([]byte, 1<<40)\nb[0] = 1", may: []string{limited, raised, crashed}},
	{name: "huge slice, touched", source: "var all [][]byte\nfor {\n\tb := make([]byte, 1<<24)\n\tfor i := 0; i < len(b); i += 4096 { b[i] = 1 }\n\tall = append(all, b)\n}", may: []string{limited}},
	{name: "string flood", source: "s := \"x\"\nfor {\n\ts += s\n}", may: []string{limited, crashed}},
	{name: "map flood", source: "m := map[int][]int{}\nfor i := 0; ; i++ {\n\tm[i] = make([]int, 1000)\n}", may: []string{limited}},
	{name: "concurrent map writes", source: "m := map[int]int{}\nfor g := 0; g < 8; g++ {\n\tgo func() { for i := 0; ; i++ { m[i%10] = i } }()\n}\nfor i := 0; ; i++ {\n\tm[i%10] = i\n}", may: []string{crashed, limited}},
	{name: "endless loop", source: "for {\n}", may: []string{limited}},
	{name: "panic in a goroutine", source: "import \"time\"\ngo func() { panic(\"boom\") }()\ntime.Sleep(time.Second)", may: []string{crashed, limited}},
	{name: "endless recovery", source: "import \"fmt\"\nfor {\n\tfunc() {\n\t\tdefer func() { recover() }()\n\t\tpanic(fmt.Sprint(1))\n\t}()\n}", may: []string{limited}},
	{name: "unsafe", source: "import \"unsafe\"\nvar x int\n_ = unsafe.Pointer(&x)", may: []string{rejected}},
	{name: "os/exec", source: "import \"os/exec\"\nexec.Command(\"id\").Run()", may: []string{rejected}},
	{name: "os", source: "import \"os\"\nos.ReadFile(\"/etc/passwd\")", may: []string{rejected}},
	{name: "net", source: "import \"net\"\nnet.Dial(\"tcp\", \"127.0.0.1:80\")", may: []string{rejected}},
	{name: "syscall", source: "import \"syscall\"\nsyscall.Kill(1, 9)", may: []string{rejected}},
	{name: "plugin", source: "import \"plugin\"", may: []string{rejected}},
	{name: "runtime", source: "import \"runtime\"\nruntime.Goexit()", may: []string{rejected}},
	{name: "reflect", source: "import \"reflect\"\nreflect.ValueOf(1)", may: []string{rejected}},
	{name: "the interpreter itself", source: "import \"github.com/traefik/yaegi/interp\"\ninterp.New(interp.Options{})", may: []string{rejected}},
	{name: "relative import", source: "import \"./x\"", may: []string{rejected}},
	{name: "absolute import", source: "import \"/etc\"", may: []string{rejected}},
	{name: "cgo", source: "import \"C\"", may: []string{rejected}},
	{name: "template", source: "import \"text/template\"\ntemplate.ParseFiles(\"/etc/passwd\")", may: []string{rejected}},
	{name: "embed", source: "import _ \"embed\"\n//go:embed passwd\nvar s string", may: []string{rejected}},
	{name: "time zone files", source: "import \"time\"\n_, err := time.LoadLocation(\"../../etc/passwd\")\nif err == nil {\n\tpanic(\"read\")\n}", may: []string{ok}},
	{name: "time zone, a real one", source: "import \"time\"\n_, err := time.LoadLocation(\"Europe/Paris\")\nif err == nil {\n\tpanic(\"read\")\n}", may: []string{ok}},
	{name: "build constraint", source: "//go:build never\n\nimport \"fmt\"\nfmt.Println(1)", may: []string{ok}},
	{name: "linkname", source: "import _ \"unsafe\"\n//go:linkname exit os.runtime_beforeExit\nfunc exit()", may: []string{rejected, raised}},
	{name: "output flood", source: "import \"fmt\"\nfor {\n\tfmt.Println(\"flood flood flood flood\")\n}", may: []string{limited}},
	{name: "one huge line", source: "import (\n\t\"fmt\"\n\t\"strings\"\n)\nfmt.Print(strings.Repeat(\"x\", 64<<20))", may: []string{ok, limited}},
	{name: "deadlock", source: "select {}", may: []string{limited}},
	{name: "receive for ever", source: "<-make(chan int)", may: []string{limited}},
	{name: "locked twice", source: "import \"sync\"\nvar mu sync.Mutex\nmu.Lock()\nmu.Lock()", may: []string{limited, crashed}},
	{name: "unlock of unlocked", source: "import \"sync\"\nvar mu2 sync.Mutex\nmu2.Unlock()", may: []string{crashed}},
	{name: "closed twice", source: "c := make(chan int)\nclose(c)\nclose(c)", may: []string{raised}},
	{name: "nil function", source: "var f func()\nf()", may: []string{raised, rejected}},
	{name: "closing brace", source: "}\nfunc evil() {", may: []string{raised}},
	{name: "brackets", source: "x := " + strings.Repeat("(", 50000) + "1" + strings.Repeat(")", 50000), may: []string{raised, rejected, crashed, limited}},
	{name: "expensive sleep", source: "import \"time\"\ntime.Sleep(time.Hour)", may: []string{limited}},
	{name: "host name taken", source: "func Query(s string) (string, error) { return s, nil }", may: []string{rejected}},
	{name: "a name of ours", source: "func rlmStatement1() {}", may: []string{rejected}},

	{name: "python: endless loop", source: "while True:\n    pass", may: []string{limited}, python: true},
	{name: "python: tower of powers", source: "x = 10**10**8", may: []string{rejected}, python: true},
	{name: "python: growing integer", source: "x = 3\nwhile True:\n    x = x * x", may: []string{limited, rejected}, python: true},
	{name: "python: growing string", source: "s = 'x'\nwhile True:\n    s += s", may: []string{limited, rejected, crashed}, python: true},
	{name: "python: growing list", source: "s = [1]\nwhile True:\n    s += s", may: []string{limited, rejected, crashed}, python: true},
	{name: "python: string times", source: "s = 'x' * 10000000000000", may: []string{limited, rejected, crashed}, python: true},
	{name: "python: range", source: "x = list(range(1000000000000))", may: []string{limited, rejected}, python: true},
	{name: "python: print flood", source: "while True:\n    print('flood flood flood')", may: []string{rejected}, python: true},
	{name: "python: class chain", source: "().__class__.__bases__[0].__subclasses__()", may: []string{rejected}, python: true},
	{name: "python: class chain of a string", source: "''.__class__.__mro__", may: []string{rejected}, python: true},
	{name: "python: open", source: "open('/etc/passwd')", may: []string{rejected}, python: true},
	{name: "python: __import__", source: "__import__('os').system('id')", may: []string{rejected}, python: true},
	{name: "python: import", source: "import os", may: []string{rejected}, python: true},
	{name: "python: eval", source: "eval('1')", may: []string{rejected}, python: true},
	{name: "python: exec", source: "exec('x = 1')", may: []string{rejected}, python: true},
	{name: "python: builtins", source: "__builtins__", may: []string{rejected}, python: true},
	{name: "python: lambda recursion", source: "f = lambda: f()\nf()", may: []string{rejected}, python: true},
	{name: "python: deep brackets", source: strings.Repeat("[", 5000) + strings.Repeat("]", 5000), may: []string{rejected}, python: true},
	{name: "python: deep operators", source: "x = " + strings.Repeat("-", 10000) + "1", may: []string{rejected}, python: true},
	{name: "python: long sum", source: "x = 1" + strings.Repeat("+1", 7000), may: []string{rejected, ok}, python: true},
	{name: "python: list in itself", source: "x = []\nx.append(x)\nprint(x)", may: []string{rejected}, python: true},
	{name: "python: list grows under a loop", source: "x = [1]\nfor i in x:\n    x.append(i)", may: []string{rejected}, python: true},
	{name: "python: homoglyph", source: "pr\u0456nt(1)", may: []string{rejected}, python: true},
	{name: "python: NUL", source: "x = 1\x00", may: []string{rejected}, python: true},
}

// TestHostileSnippets runs each attack in a session of its own, then asks the
// session whether it lives and has told the truth of what it lost.
func TestHostileSnippets(t *testing.T) {
	tier := warmTier(t)
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			wall := 400 * time.Millisecond
			if !slices.Contains(h.may, limited) {
				wall = 10 * time.Second // it must end by something else, however slow the machine
			}
			s := openSandbox(t, tier, tiers.Config{Limits: tiers.Limits{Wall: wall}})
			language, mark, look, want := tiers.Go, "kept := 41", "kept + 1", "42\n"
			if h.python {
				language, mark = tiers.Python, "kept = 41"
			}
			runOK(t, s, language, mark)
			begun := time.Now()
			r, err := s.Run(t.Context(), tiers.Job{Language: language, Source: h.source})
			took := time.Since(begun)
			outcome := string(r.Status)
			var refusal *tiers.RejectedError
			if errors.As(err, &refusal) {
				outcome = rejected
			} else if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(h.may, " "), outcome) {
				t.Errorf("the outcome is %s, may be %v: %+v %v %v", outcome, h.may, r.Exception, r.Limit, err)
			}
			if took > wall+8*time.Second {
				t.Errorf("it took %v", took)
			}
			if again := runOK(t, s, language, look); again.Stdout != want {
				t.Errorf("the session is damaged: %q", again.Stdout)
			}
		})
	}
}
