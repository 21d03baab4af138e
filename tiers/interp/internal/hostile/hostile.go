// Package hostile has the snippets that attack tier interp, with the harm that
// each does in a bare interpreter. It is for tests: they are here, and not with
// the tier, so that its tests need not be linked with all of the standard
// library that a bare interpreter hands out.
package hostile

import (
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// Outcomes that a snippet may have in the tier.
const (
	Rejected = "rejected"
	OK       = string(tiers.StatusOK)
	Raised   = string(tiers.StatusRaised)
	Limited  = string(tiers.StatusLimit)
	Crashed  = string(tiers.StatusCrashed)
)

// Harms that a snippet may do to a bare interpreter, by the names of package harm.
// Any other is a text that it writes.
const (
	Kills  = "kills"
	Hangs  = "hangs"
	Grows  = "grows"
	Floods = "floods"
)

// Snippet attacks the tier. PORT in it is the address of a server of the host,
// VICTIM a process. Those that begin with "python: " are Python, the others Go.
type Snippet struct {
	Name, Source string
	May          []string // outcomes in the tier: of several, any
	Harm         string   // in a bare interpreter
	// Truth is what a true interpreter prints, where the harm is that a bare one
	// prints something else.
	Truth string
}

// Language is what the snippet is written in.
func (s Snippet) Language() tiers.Language {
	if strings.HasPrefix(s.Name, "python: ") {
		return tiers.Python
	}
	return tiers.Go
}

// Secret is what the host of a bare interpreter keeps: a file of that name, a
// variable of the environment and packages hold it.
const Secret = "the secret of the host"

// Snippets are all of them.
var Snippets = []Snippet{
	{Name: "sentinel errors", Source: "import \"io\"\nio.EOF = nil", May: []string{OK}, Harm: "io.EOF is nil"},
	{Name: "sentinel by pointer", Source: "import \"io\"\np := &io.EOF\n*p = nil", May: []string{OK, Rejected}, Harm: "io.EOF is nil"},
	{Name: "standard tables", Source: "import \"unicode\"\nunicode.Latin = nil", May: []string{OK}, Harm: "unicode.Latin is nil"},
	{Name: "default encodings", Source: "import \"encoding/base64\"\n*base64.StdEncoding = base64.Encoding{}", May: []string{OK, Raised, Rejected}, Harm: "base64 is broken"},
	{Name: "goroutine leak", Source: "for i := 0; i < 5000; i++ {\n\tgo func() { select {} }()\n}", May: []string{OK}, Harm: "goroutines stay"},
	{Name: "busy goroutines", Source: "for i := 0; i < 4; i++ {\n\tgo func() { for {} }()\n}", May: []string{OK, Limited}, Harm: "goroutines stay busy"},
	{Name: "stack overflow", Source: "func f(n int) int { return f(n+1) + 1 }\nf(0)", May: []string{Crashed, Limited}, Harm: Grows},
	{Name: "mutual recursion", Source: "func a() { b() }\nfunc b() { a() }\na()", May: []string{Crashed, Limited}, Harm: Grows},
	{Name: "huge slice", Source: "b := make([]byte, 1<<40)\nb[0] = 1", May: []string{Limited, Raised, Crashed}, Harm: Kills},
	{Name: "huge slice, touched", Source: "var all [][]byte\nfor {\n\tb := make([]byte, 1<<24)\n\tfor i := 0; i < len(b); i += 4096 { b[i] = 1 }\n\tall = append(all, b)\n}", May: []string{Limited}, Harm: Grows},
	{Name: "string flood", Source: "s := \"x\"\nfor {\n\ts += s\n}", May: []string{Limited, Crashed}, Harm: Grows},
	{Name: "map flood", Source: "m := map[int][]int{}\nfor i := 0; ; i++ {\n\tm[i] = make([]int, 1000)\n}", May: []string{Limited}, Harm: Grows},
	{Name: "concurrent map writes", Source: "m := map[int]int{}\nfor g := 0; g < 8; g++ {\n\tgo func() { for i := 0; ; i++ { m[i%10] = i } }()\n}\nfor i := 0; ; i++ {\n\tm[i%10] = i\n}", May: []string{Crashed, Limited}, Harm: Kills},
	{Name: "endless loop", Source: "for {\n}", May: []string{Limited}, Harm: Hangs},
	{Name: "panic in a goroutine", Source: "import \"time\"\ngo func() { panic(\"boom\") }()\ntime.Sleep(time.Second)", May: []string{Crashed, Limited}, Harm: Kills},
	{Name: "endless recovery", Source: "import \"fmt\"\nfor {\n\tfunc() {\n\t\tdefer func() { recover() }()\n\t\tpanic(fmt.Sprint(1))\n\t}()\n}", May: []string{Limited}, Harm: Hangs},
	{Name: "unsafe", Source: "import \"unsafe\"\np := (*int)(unsafe.Pointer(uintptr(0xdead0000)))\n*p = 1", May: []string{Rejected}, Harm: Kills},
	{Name: "os/exec", Source: "import (\n\t\"fmt\"\n\t\"os/exec\"\n)\nout, _ := exec.Command(\"cat\", \"secret\").Output()\nfmt.Println(string(out))", May: []string{Rejected}, Harm: Secret},
	{Name: "os", Source: "import (\n\t\"fmt\"\n\t\"os\"\n)\nb, _ := os.ReadFile(\"secret\")\nfmt.Println(string(b))", May: []string{Rejected}, Harm: Secret},
	{Name: "net", Source: "import (\n\t\"fmt\"\n\t\"net\"\n)\nc, err := net.Dial(\"tcp\", \"PORT\")\nfmt.Println(\"connected:\", c != nil, err)", May: []string{Rejected}, Harm: "connected: true <nil>"},
	{Name: "syscall", Source: "import (\n\t\"fmt\"\n\t\"syscall\"\n)\nfmt.Println(\"killed:\", syscall.Kill(VICTIM, 9))", May: []string{Rejected}, Harm: "killed: <nil>"},
	{Name: "log.Fatal", Source: "import \"log\"\nlog.Fatal(\"the end\")", May: []string{Rejected}, Harm: Kills},
	{Name: "runtime", Source: "import \"runtime\"\nruntime.Goexit()", May: []string{Rejected}, Harm: Hangs},
	{Name: "reflect", Source: "import (\n\t\"io\"\n\t\"reflect\"\n)\nreflect.ValueOf(&io.EOF).Elem().SetZero()", May: []string{Rejected}, Harm: "io.EOF is nil"},
	{Name: "the interpreter itself", Source: "import \"github.com/traefik/yaegi/interp\"\nin := interp.New(interp.Options{GoPath: \"gopath\"})\nin.Eval(\"import \\\"own\\\"\")", May: []string{Rejected}, Harm: Secret},
	{Name: "relative import", Source: "import \"./x\"", May: []string{Rejected}, Harm: Secret},
	{Name: "a package of the host", Source: "import \"own\"", May: []string{Rejected}, Harm: Secret},
	{Name: "template", Source: "import (\n\t\"fmt\"\n\t\"strings\"\n\t\"text/template\"\n)\nvar b strings.Builder\nt, _ := template.ParseFiles(\"secret\")\nt.Execute(&b, nil)\nfmt.Println(b.String())", May: []string{Rejected}, Harm: Secret},
	{Name: "time zone files", Source: "import \"time\"\n_, err := time.LoadLocation(\"Zone\")\nif err == nil {\n\tpanic(\"a file was read\")\n}", May: []string{OK}, Harm: "a file was read"},
	{Name: "output flood", Source: "import \"fmt\"\nfor {\n\tfmt.Println(\"flood flood flood flood\")\n}", May: []string{Limited}, Harm: Floods},
	{Name: "one huge line", Source: "import (\n\t\"fmt\"\n\t\"strings\"\n)\nfmt.Print(strings.Repeat(\"x\", 64<<20))", May: []string{OK, Limited}, Harm: Floods},
	{Name: "deadlock", Source: "select {}", May: []string{Limited}, Harm: Hangs},
	{Name: "receive for ever", Source: "<-make(chan int)", May: []string{Limited}, Harm: Hangs},
	{Name: "locked twice", Source: "import \"sync\"\nvar mu sync.Mutex\nmu.Lock()\nmu.Lock()", May: []string{Limited, Crashed}, Harm: Hangs},
	{Name: "unlock of unlocked", Source: "import \"sync\"\nvar mu2 sync.Mutex\nmu2.Unlock()", May: []string{Crashed}, Harm: Kills},
	{Name: "closed twice", Source: "import \"time\"\nc := make(chan int)\ngo func() {\n\tclose(c)\n\tclose(c)\n}()\ntime.Sleep(time.Second)", May: []string{Crashed, Limited}, Harm: Kills},
	{Name: "nil function", Source: "import \"time\"\nvar f func()\ngo func() { f() }()\ntime.Sleep(time.Second)", May: []string{Crashed, Limited, Rejected}, Harm: Kills},
	{Name: "expensive sleep", Source: "import \"time\"\ntime.Sleep(time.Hour)", May: []string{Limited}, Harm: Hangs},
	{Name: "host name taken", Source: "func Query(s string) (string, error) { return s, nil }", May: []string{Rejected}, Harm: "a host call is answered by the snippet"},
	{Name: "the environment", Source: "import (\n\t\"fmt\"\n\t\"os\"\n)\nfmt.Println(os.Getenv(\"RLM_SECRET\"))", May: []string{Rejected}, Harm: Secret},
	{Name: "os.Exit", Source: "import \"os\"\nos.Exit(3)", May: []string{Rejected}, Harm: Kills},
	{Name: "a symbolic link", Source: "import (\n\t\"fmt\"\n\t\"os\"\n)\nos.Symlink(\"secret\", \"link\")\nb, _ := os.ReadFile(\"link\")\nfmt.Println(string(b))", May: []string{Rejected}, Harm: Secret},
	{Name: "/proc", Source: "import (\n\t\"fmt\"\n\t\"io/ioutil\"\n)\nb, _ := ioutil.ReadFile(\"/proc/self/environ\")\nfmt.Println(string(b))", May: []string{Rejected}, Harm: Secret},
	{Name: "a socket", Source: "import (\n\t\"fmt\"\n\t\"syscall\"\n)\nfd, err := syscall.Socket(2, 2, 0)\nfmt.Println(\"socket:\", fd > 0, err)", May: []string{Rejected}, Harm: "socket: true <nil>"},
	{Name: "ptrace", Source: "import (\n\t\"fmt\"\n\t\"os\"\n\t\"syscall\"\n)\np, _ := os.StartProcess(\"/bin/sleep\", []string{\"sleep\", \"9\"}, &os.ProcAttr{})\nfmt.Println(\"traced:\", syscall.PtraceAttach(p.Pid))\np.Kill()", May: []string{Rejected}, Harm: "traced: <nil>"},
	{Name: "a fork", Source: "import (\n\t\"fmt\"\n\t\"os\"\n)\np, err := os.StartProcess(\"/bin/sh\", []string{\"sh\", \"-c\", \"exit 0\"}, &os.ProcAttr{})\nfmt.Println(\"started:\", p != nil, err)", May: []string{Rejected}, Harm: "started: true <nil>"},
	{Name: "a disk flood", Source: "import (\n\t\"fmt\"\n\t\"os\"\n)\nerr := os.WriteFile(\"flood\", make([]byte, 8<<20), 0600)\nfmt.Println(\"written:\", err)", May: []string{Rejected}, Harm: "written: <nil>"},
	{Name: "runtime/debug", Source: "import \"runtime/debug\"\nfunc f(n int) int { if n == 0 { return 0 }; return f(n-1) }\ndebug.SetMaxStack(1 << 10)\nf(1000)", May: []string{Rejected}, Harm: Kills},
	{Name: "python: endless loop", Source: "while True:\n    pass", May: []string{Limited}, Harm: Hangs},
	{Name: "python: tower of powers", Source: "x = 10**10**8", May: []string{Rejected}, Harm: Hangs},
	{Name: "python: growing integer", Source: "x = 3\nwhile True:\n    x = x * x", May: []string{Limited, Rejected}, Harm: Hangs},
	{Name: "python: growing string", Source: "s = 'x'\nwhile True:\n    s += s", May: []string{Limited, Rejected, Crashed}, Harm: Grows},
	{Name: "python: growing list", Source: "s = [1]\nwhile True:\n    s += s", May: []string{Limited, Rejected, Crashed}, Harm: Grows},
	{Name: "python: string times", Source: "s = 'x' * 10000000000000", May: []string{Limited, Rejected, Crashed}, Harm: Grows},
	{Name: "python: range", Source: "x = list(range(1000000000000))", May: []string{Limited, Rejected}, Harm: Grows},
	{Name: "python: print flood", Source: "while True:\n    print('flood flood flood')", May: []string{Rejected}, Harm: Floods},
	{Name: "python: chain of attributes", Source: "f = getattr(__import__(\"o\" + \"s\"), \"sys\" + \"tem\")\nf(\"cat secret\")", May: []string{Rejected}, Harm: Secret},
	{Name: "python: class chain of a string", Source: "def f():\n    pass\ng = getattr(f, \"__code__\")\nprint(g)", May: []string{Rejected}, Harm: "code instance"},
	{Name: "python: open", Source: "print(open(\"secret\").read())", May: []string{Rejected}, Harm: Secret},
	{Name: "python: __import__", Source: "__import__(\"os\").system(\"cat secret\")", May: []string{Rejected}, Harm: Secret},
	{Name: "python: import", Source: "import os\nprint(os.getenv(\"RLM_SECRET\"))", May: []string{Rejected}, Harm: Secret},
	{Name: "python: eval", Source: "print(eval(\"open('secret').read()\"))", May: []string{Rejected}, Harm: Secret},
	{Name: "python: exec", Source: "exec(\"print(open('secret').read())\")", May: []string{Rejected}, Harm: Secret},
	{Name: "python: builtins", Source: "import builtins\nprint(builtins.open(\"secret\").read())", May: []string{Rejected}, Harm: Secret},
	{Name: "python: lambda recursion", Source: "f = lambda: f()\nf()", May: []string{Rejected}, Harm: Grows},
	{Name: "python: deep brackets", Source: strings.Repeat("[", 5000000) + strings.Repeat("]", 5000000), May: []string{Rejected}, Harm: Grows},
	{Name: "python: deep operators", Source: "x = " + strings.Repeat("-", 5000000) + "1", May: []string{Rejected}, Harm: Grows},
	{Name: "python: long sum", Source: "x = 1" + strings.Repeat("+1", 3000000), May: []string{Rejected}, Harm: Grows},
	{Name: "python: list in itself", Source: "x = []\nx.append(x)\nprint(x)", May: []string{Rejected}, Harm: Grows},
	{Name: "python: list grows under a loop", Source: "x = [1]\nfor i in x:\n    if len(x) < 9:\n        x.append(i)\nprint(len(x))", May: []string{Rejected}, Truth: "9\n"},
	{Name: "python: homoglyph", Source: "\uff50rint(1)", May: []string{Rejected}, Truth: "1\n"},
	{Name: "python: another list", Source: "x = [1, 2]\ny = x\nx *= 2\nprint(y)", May: []string{Rejected}, Truth: "[1, 2, 1, 2]\n"},
	{Name: "python: os._exit", Source: "import os\nos._exit(3)", May: []string{Rejected}, Harm: Kills},
	{Name: "python: listdir", Source: "import os\nprint(os.listdir(\".\"))", May: []string{Rejected}, Harm: "gopath"},
	{Name: "python: writing", Source: "f = open(\"new\", \"w\")\nf.write(\"x\")\nf.close()\nimport os\nprint(\"new\" in os.listdir(\".\"))", May: []string{Rejected}, Harm: "True"},
	{Name: "python: time.sleep", Source: "import time\ntime.sleep(3600)", May: []string{Rejected}, Harm: Hangs},
	{Name: "python: glob", Source: "import glob\nprint(glob.glob(\"/et*\"))", May: []string{Rejected}, Harm: "/etc"},
}
