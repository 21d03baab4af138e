package local_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
)

// goAttacks attack the program's jail. None may print "ESCAPED"; how they end is
// theirs. CANARY is a file of the host, PORT a server on it, CACHE the folder of
// compiled packages.
var goAttacks = map[string]string{
	"canary":            `import "os"; if b, err := os.ReadFile("CANARY"); err == nil { println("ESCAPED", string(b)) }`,
	"canary by root":    `import "os"; for _, p := range []string{"/proc/1/root", "/proc/self/root", "/proc/self/cwd/..", "/proc/self/fd/3/.."} { if _, err := os.ReadFile(p + "CANARY"); err == nil { println("ESCAPED") } }`,
	"canary by symlink": `import "os"; os.Symlink("CANARY", "/tmp/l"); if _, err := os.ReadFile("/tmp/l"); err == nil { println("ESCAPED") }`,
	"passwd":            `import "os"; if _, err := os.ReadFile("/etc/passwd"); err == nil { println("ESCAPED") }`,
	"environment":       `import "os"; if len(os.Environ()) > 6 { println("ESCAPED") }; if b, _ := os.ReadFile("/proc/1/environ"); len(b) > 0 { println("ESCAPED") }`,
	"own binary":        `import "os"; if f, err := os.OpenFile("/program/main", os.O_WRONLY, 0); err == nil { println("ESCAPED"); f.Close() }; if os.Remove("/program/main") == nil { println("ESCAPED") }`,
	"compiled packages": `import "os"; if _, err := os.ReadDir("CACHE"); err == nil { println("ESCAPED") }; if os.WriteFile("CACHE/x", nil, 0o644) == nil { println("ESCAPED") }`,
	"system folders":    `import "os"; if os.WriteFile("/usr/x", nil, 0o644) == nil || os.WriteFile("/x", nil, 0o644) == nil { println("ESCAPED") }`,
	"dial":              `import "net"; if c, err := net.Dial("tcp", "PORT"); err == nil { println("ESCAPED"); c.Close() }`,
	"listen":            `import "net"; if c, err := net.Listen("tcp", "127.0.0.1:0"); err == nil { println("ESCAPED"); c.Close() }`,
	"udp":               `import "net"; if c, err := net.Dial("udp", "8.8.8.8:53"); err == nil { println("ESCAPED"); c.Close() }`,
	"http":              `import "net/http"; if _, err := http.Get("http://PORT/"); err == nil { println("ESCAPED") }`,
	"abstract socket":   `import "syscall"; if _, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0); err == nil { println("ESCAPED") }`,
	"exec of a copy":    `import ("os"; "os/exec"); b, _ := os.ReadFile("/proc/self/exe"); os.WriteFile("/tmp/copy", b, 0o755); if exec.Command("/tmp/copy").Start() == nil { println("ESCAPED") }`,
	"ptrace":            `import "syscall"; if syscall.PtraceAttach(1) == nil { println("ESCAPED") }`,
	"mount":             `import "syscall"; if syscall.Mount("none", "/tmp", "tmpfs", 0, "") == nil { println("ESCAPED") }`,
	"unshare":           `import "syscall"; if syscall.Unshare(syscall.CLONE_NEWUSER) == nil { println("ESCAPED") }`,
	"setuid":            `import "syscall"; if _, _, e := syscall.Syscall(syscall.SYS_SETUID, 0, 0, 0); e == 0 { println("ESCAPED") }`,
	"kill init":         `import "syscall"; syscall.Kill(1, syscall.SIGKILL); syscall.Kill(-1, syscall.SIGKILL)`,
	"kill parent":       `import ("os"; "syscall"); syscall.Kill(os.Getppid(), syscall.SIGKILL)`,
	"wild pointer":      `import "unsafe"; *(*int)(unsafe.Pointer(uintptr(8))) = 1`,
	"smashed runtime":   "import \"unsafe\"\nf := func() {}\np := *(*uintptr)(unsafe.Pointer(&f))\nfor i := uintptr(0); i < 1<<20; i += 8 { *(*uintptr)(unsafe.Pointer(p - i)) = 0 }",
	"jump into data":    "import \"unsafe\"\ncode := []byte{0x90, 0xc3}\np := &code[0]\npp := &p\nf := *(*func())(unsafe.Pointer(&pp))\nf()",
	"fork bomb":         "import (\n\t\"os\"\n\t\"os/exec\"\n)\nfunc init() {}\nfor {\n\tcmd := exec.Command(\"/proc/self/exe\")\n\tcmd.ExtraFiles = []*os.File{os.NewFile(3, \"\")}\n\tcmd.Start()\n}",
	"goroutine bomb":    `for { go func() { select {} }() }`,
	"thread bomb":       "import \"runtime\"\nfor { go func() { runtime.LockOSThread(); select {} }() }",
	"disk flood":        "import \"os\"\nb := make([]byte, 1<<20)\nf, _ := os.Create(\"/tmp/x\")\nn := 0\nfor { m, err := f.Write(b); n += m; if err != nil { break } }\nif n > 1<<30 { println(\"ESCAPED\") }",
	"many files":        "import (\n\t\"fmt\"\n\t\"os\"\n)\nfor i := range 100000 { if os.WriteFile(fmt.Sprint(\"/tmp/\", i), nil, 0o600) != nil { break } }",
	"output flood":      "import \"fmt\"\nfor { fmt.Println(\"flood flood flood flood flood\") }",
	"rubbish frames":    "import \"syscall\"\nfor i := range 100 { syscall.Write(3, []byte{255, 255, 255, 255, 'O', byte(i)}) }",
	"unknown frame":     "import \"syscall\"\nsyscall.Write(3, []byte{0, 0, 0, 0, '?'})",
	"forged end":        "import \"syscall\"\nb := []byte(`{\"verdict\":\"ok\"}`)\nsyscall.Write(3, append([]byte{byte(len(b)), 0, 0, 0, 'E'}, b...))\nfor {}",
	"forged ends":       "import \"syscall\"\nb := []byte(`{\"verdict\":\"ok\"}`)\nfor range 50 { syscall.Write(3, append([]byte{byte(len(b)), 0, 0, 0, 'E'}, b...)) }",
	"forged call":       "import \"syscall\"\nb := []byte(`{\"id\":1,\"function\":\"os.Exit\",\"args\":[]}`)\nsyscall.Write(3, append([]byte{byte(len(b)), 0, 0, 0, 'C'}, b...))",
	"forged question":   "import \"syscall\"\nb := []byte(`{\"id\":1,\"input\":-5,\"op\":\"slice\",\"a\":-9,\"b\":99999999999,\"needle\":\"\"}`)\nsyscall.Write(3, append([]byte{byte(len(b)), 0, 0, 0, 'T'}, b...))",
	"closed connection": `import "syscall"; syscall.Close(3); for {}`,
	"closed outputs":    `import ("os"; "syscall"); os.Stdout.Close(); os.Stderr.Close(); syscall.Close(1); syscall.Close(2); panic("silent")`,
	"stopped":           `import "syscall"; syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)`,
	"stack overflow":    "func deep(n int) int { return deep(n+1) + 1 }\ndeep(0)",
	"map race":          "m := map[int]int{}\nfor range 8 { go func() { for i := 0; ; i++ { m[i%10] = i } }() }\nfor i := 0; ; i++ { m[i%10] = i }",
	"goroutine panic":   "import \"time\"\ngo func() { panic(\"boom\") }()\ntime.Sleep(time.Second)",
	"goexit":            `import "runtime"; runtime.Goexit()`,
	"finalizers":        "import \"runtime\"\ntype T struct{ p *int }\nx := &T{new(int)}\nruntime.SetFinalizer(x, func(*T) { for {} })\nx = nil\nruntime.GC()",
	"linkname":          "import _ \"unsafe\"\n//go:linkname exit os.runtime_beforeExit\nfunc exit(code int)\nexit(1)",
	"embed":             "import _ \"embed\"\n//go:embed CANARY\nvar secret string\nif secret != \"\" { println(\"ESCAPED\") }",
	"line directive":    "//line CANARY:1\nvar x int = \"s\"",
	"assembly":          "import \"C\"\nfunc f()\nf()",
	"plugin":            `import "plugin"; if _, err := plugin.Open("CANARY"); err == nil { println("ESCAPED") }`,
	"stdin":             `import ("bufio"; "os"); bufio.NewReader(os.Stdin).ReadString('\n')`,
	"core":              `import "syscall"; var l syscall.Rlimit; l.Cur, l.Max = 1<<40, 1<<40; if syscall.Setrlimit(syscall.RLIMIT_CORE, &l) == nil { println("ESCAPED") }`,
}

// goBombs attack the compiler.
var goBombs = map[string]string{
	"constant":       "const a = 1 << 100000000\nvar b = a",
	"constant tower": "const (\n\ta = \"0123456789\"\n\tb = a + a + a + a + a + a + a + a + a + a\n\tc = b + b + b + b + b + b + b + b + b + b\n\td = c + c + c + c + c + c + c + c + c + c\n\te = d + d + d + d + d + d + d + d + d + d\n\tf = e + e + e + e + e + e + e + e + e + e\n\tg = f + f + f + f + f + f + f + f + f + f\n\th = g + g + g + g + g + g + g + g + g + g\n)\nprintln(len(h))",
	"array":          "var x [1 << 36]byte\nx[1] = 1",
	"array of text":  "var x = [1 << 30]string{1 << 29: \"a\"}\nx[0] = x[1]",
	"brackets":       "x := " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000),
	"operators":      "y := 1\nx := y" + strings.Repeat(" + y", 200000),
	"generic types":  "type T[A any] struct{ a A; n *T[[2]A] }\nvar x T[int]\n_ = x",
	"generic calls":  "func f[A any](n int, a A) { if n > 0 { f(n-1, [1]A{a}) } }\nf(3, 1)",
	"types":          "type T0 struct{ a, b, c, d int }\n" + doublings(40) + "var x T40\n_ = x",
	"comparisons":    "type T0 struct{ a, b string }\n" + doublings(24) + "var x, y T24\nprintln(x == y)",
	"functions":      strings.Repeat("func() {", 5000) + strings.Repeat("}()\n", 5000),
	"switch":         "x := 1\nswitch x {\n" + cases(3000) + "}",
	"statements":     "x := 1\n" + strings.Repeat("x = x*x + x\n", 60000),
	"long":           "x := \"" + strings.Repeat("x", 2<<20) + "\"",
	"closures":       "x := 1\n" + strings.Repeat("go func() { defer func() { x++ }() }()\n", 2000),
}

func doublings(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "type T%d struct{ a, b T%d }\n", i+1, i)
	}
	return b.String()
}

func cases(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "case %d: x += %d\n", i, i)
	}
	return b.String()
}

// TestHostileGo runs each attack in a session of its own, then asks the session
// whether it lives and has told the truth of what it lost.
func TestHostileGo(t *testing.T) {
	cache := t.TempDir()
	if user, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(user, "rlm", "go", "build")
	}
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(canary, []byte("secret"), 0o644); err != nil { //nolint:gosec // everybody may read it, in vain
		t.Fatal(err)
	}
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() }) // after the attacks
	fill := strings.NewReplacer("CANARY", canary, "PORT", server.Addr().String(), "CACHE", cache)
	tier := goTier(t)
	for name, source := range goAttacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack(t, tier, fill.Replace(source))
		})
	}
	for name, source := range goBombs {
		t.Run("compiler/"+name, func(t *testing.T) {
			t.Parallel()
			attack(t, tier, source)
		})
	}
}

func attack(t *testing.T, tier *local.Tier, source string) {
	t.Helper()
	s := openGo(t, tier, tiers.Config{Limits: tiers.Limits{Wall: 2 * time.Second, Memory: 128 << 20}})
	goOK(t, s, "kept := 41")
	begun := time.Now()
	r := runGo(t, s, source)
	took := time.Since(begun)
	said := ""
	if r.Exception != nil {
		said = r.Exception.Message
	}
	t.Logf("%s: %s %s in %v: %.200q", t.Name(), r.Status, r.Limit, took.Round(time.Millisecond), said)
	if strings.Contains(r.Stdout+r.Stderr, "ESCAPED") {
		t.Errorf("it got out: %s %s", r.Stdout, r.Stderr)
	}
	if took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if r.Status == tiers.StatusCrashed && r.Lost == nil {
		t.Error("nothing was lost by a crash")
	}
	again, err := s.Run(t.Context(), tiers.Job{Language: tiers.Go, Source: "kept + 1"})
	var broken *tiers.BrokenError
	switch {
	case errors.As(err, &broken) && broken.Lost != nil: // its program does not run a second time
		if r := goOK(t, s, "kept := 41\nkept + 1"); r.Stdout != "42\n" {
			t.Errorf("the session is damaged: %q", r.Stdout)
		}
	case err != nil || again.Status != tiers.StatusOK || again.Stdout != "42\n":
		t.Errorf("the session is damaged: %+v %v", again, err)
	}
}

// TestGoLeavesNothingBehind looks for processes, files, goroutines and
// descriptors.
func TestGoLeavesNothingBehind(t *testing.T) {
	tier := goTier(t)
	goOK(t, openGo(t, tier, tiers.Config{}), "1") // what stays for ever is there now
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before, ignore := descriptors(t), goleak.IgnoreCurrent()
	for _, source := range []string{"x := 1", "for {\n}", "x := ", "import \"os\"\nos.Exit(1)", "panic(1)", "go func() { panic(1) }()\nselect {}"} {
		s, err := tier.Open(t.Context(), tiers.Config{Limits: tiers.Limits{Wall: 300 * time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		runGo(t, s, source)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := s.Run(ctx, tiers.Job{Language: tiers.Go, Source: source + "\n"}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		cancel()
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
	goleak.VerifyNone(t, ignore)
	runtime.GC()
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "rlm-go-*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v %v", left, err)
	}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	own := 0
	for _, name := range tasks {
		if text, err := os.ReadFile(name); err == nil {
			own += len(strings.Fields(string(text)))
		}
	}
	if want := 2; own > want { // of the session above: its interpreter and its compiler
		t.Errorf("%d children, %d expected", own, want)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}
