package gosuite

import (
	"strings"

	"github.com/rlmhq/rlm/internal/jail"
)

// Attack attacks the wall of a Go program, its runtime or its connection. In a tier
// none may print "ESCAPED"; how they end is theirs.
type Attack struct {
	Name, Imports, Body string
	// Harm is what it does in a jail without some layers, as a program that nobody
	// watches.
	Harm    Harm
	Without jail.Layers
}

// What stands in the way of files, and of connections. A process namespace with the
// /proc of another has no way to list its threads.
const (
	files = jail.Mounts | jail.Landlock | jail.Namespaces
	wires = jail.Network | jail.Seccomp | jail.Landlock
)

// Harm is what an attack does.
type Harm string

// The kinds of harm.
const (
	Escapes Harm = "escapes" // it prints ESCAPED
	Kills   Harm = "kills"   // its program ends badly, with all that is in it
	Hangs   Harm = "hangs"   // it goes on until it is killed, or its memory is at an end
	Forges  Harm = "forges"  // it writes to the connection what only the runtime may
)

// Source is the attack as a snippet.
func (a Attack) Source() string { return a.Importing() + a.Body }

// Importing are its imports as source.
func (a Attack) Importing() string {
	list := ""
	for _, path := range strings.Fields(a.Imports) {
		list += "import \"" + path + "\"\n"
	}
	return list
}

// Attacks are all of them. CANARY is a file of the host, DIR its folder, OPEN
// one where all may write, PORT a server, HOSTPID a process, CACHE the folder of
// compiled packages.
var Attacks = []Attack{
	{"canary", "os", "b, err := os.ReadFile(\"CANARY\")\nif err == nil && len(b) > 0 {\n\tprintln(\"ESCAPED\")\n}", Escapes, files},
	{"canary by root", "os", "for _, p := range []string{\"/proc/1/root\", \"/proc/self/root\", \"/proc/self/cwd/../../../..\", \"/proc/self/fd/3/..\"} {\n\tif _, err := os.ReadFile(p + \"CANARY\"); err == nil {\n\t\tprintln(\"ESCAPED\")\n\t}\n}", Escapes, files},
	{"canary by symlink", "os", "os.Chdir(\"OPEN\")\nos.Symlink(\"CANARY\", \"link\")\n_, err := os.ReadFile(\"link\")\nif err == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, files},
	{"passwd", "os", "_, err := os.ReadFile(\"/etc/passwd\")\nif err == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, files},
	{"environment", "os", "b, _ := os.ReadFile(\"/proc/1/environ\")\nif os.Getenv(\"RLM_HOSTILE\") != \"\" || len(b) > 0 {\n\tprintln(\"ESCAPED\")\n}", Escapes, 0},
	{"own binary", "os", "exe, _ := os.Readlink(\"/proc/self/exe\")\nif os.Remove(exe) == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, files},
	{"folders", "os", "for _, dir := range []string{\"CACHE\", \"DIR\"} {\n\tif _, err := os.ReadDir(dir); err == nil {\n\t\tprintln(\"ESCAPED\")\n\t}\n}", Escapes, files},
	{"writing to the host", "os", "if os.WriteFile(\"OPEN/go\", nil, 0o644) == nil || os.WriteFile(\"/usr/x\", nil, 0o644) == nil || os.WriteFile(\"/x\", nil, 0o644) == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, files},
	{"dial", "net", "c, err := net.Dial(\"tcp\", \"PORT\")\nif err == nil {\n\tprintln(\"ESCAPED\")\n\tc.Close()\n}", Escapes, wires},
	{"udp", "net", "c, err := net.Dial(\"udp\", \"PORT\")\nif err == nil {\n\tprintln(\"ESCAPED\")\n\tc.Close()\n}", Escapes, wires},
	{"listen", "net", "c, err := net.Listen(\"tcp\", \"127.0.0.1:0\")\nif err == nil {\n\tprintln(\"ESCAPED\")\n\tc.Close()\n}", Escapes, wires},
	{"http", "net/http", "_, err := http.Get(\"http://PORT/\")\nif err == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, wires},
	{"socket of the kernel", "syscall", "_, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW, 0)\nif err == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, jail.Seccomp},
	{"abstract socket", "syscall", "_, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)\nif err == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, jail.Seccomp},
	{"exec of a copy", "os os/exec", "os.Chdir(\"OPEN\")\nb, _ := os.ReadFile(\"/proc/self/exe\")\nos.WriteFile(\"copy\", b, 0o755)\nif exec.Command(\"./copy\").Run() == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, files},
	{"ptrace", "os/exec runtime syscall", "runtime.LockOSThread()\np := exec.Command(\"/bin/sleep\", \"9\")\np.Start()\nif syscall.PtraceAttach(p.Process.Pid) == nil || syscall.PtraceAttach(1) == nil {\n\tprintln(\"ESCAPED\")\n}\np.Process.Kill()", Escapes, jail.Seccomp},
	{"mount", "syscall", "if syscall.Mount(\"none\", \"/tmp\", \"tmpfs\", 0, \"\") == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, jail.Seccomp | jail.Landlock | jail.Privileges},
	{"namespaces", "os/exec syscall", "p := exec.Command(\"/bin/true\")\np.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}\nif p.Run() == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, jail.Seccomp},
	{"becoming root", "os os/exec strings syscall", "p := exec.Command(\"/usr/bin/id\", \"-u\")\np.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}}\nb, _ := p.Output()\nif strings.TrimSpace(string(b)) == \"0\" {\n\tprintln(\"ESCAPED\")\n}", Escapes, files | jail.Seccomp | jail.Privileges},
	{"a signal to the host", "syscall", "err := syscall.Kill(HOSTPID, 0)\nif err == nil || err == syscall.EPERM {\n\tprintln(\"ESCAPED\")\n}", Escapes, files},
	{"core", "syscall", "l := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}\nif syscall.Setrlimit(syscall.RLIMIT_CORE, &l) == nil {\n\tprintln(\"ESCAPED\")\n}", Escapes, jail.Rlimits},
	{"disk flood", "os strconv", "os.Chdir(\"OPEN\")\nn := 0\nfor i := 0; i < 2; i++ {\n\tf, err := os.Create(\"flood\" + strconv.Itoa(i))\n\tif err != nil {\n\t\tbreak\n\t}\n\tm, _ := f.Write(make([]byte, 48<<20))\n\tn += m\n}\nif n > 64<<20 {\n\tprintln(\"ESCAPED\")\n}", Escapes, files},
	{"many files", "os strconv", "os.Chdir(\"OPEN\")\nn := 0\nfor i := 0; i < 5000; i++ {\n\tif os.WriteFile(\"f\"+strconv.Itoa(i), nil, 0o600) == nil {\n\t\tn++\n\t}\n}\nif n == 5000 {\n\tprintln(\"ESCAPED\")\n}", Escapes, files},
	{"kill everybody", "os syscall", "syscall.Kill(1, syscall.SIGKILL)\nsyscall.Kill(os.Getppid(), syscall.SIGKILL)\nsyscall.Kill(-1, syscall.SIGKILL)\nsyscall.Kill(os.Getpid(), syscall.SIGKILL)", Kills, 0},
	{"wild pointer", "unsafe", "*(*int)(unsafe.Pointer(uintptr(8))) = 1", Kills, 0},
	{"smashed runtime", "unsafe", "f := func() {}\np := *(*uintptr)(unsafe.Pointer(&f))\nfor i := uintptr(0); i < 1<<20; i += 8 {\n\t*(*uintptr)(unsafe.Pointer(p - i)) = 0\n}", Kills, 0},
	{"jump into data", "unsafe", "code := []byte{0x90, 0xc3}\np := &code[0]\npp := &p\nf := *(*func())(unsafe.Pointer(&pp))\nf()", Kills, 0},
	{"stack overflow", "", "var deep func(int) int\ndeep = func(n int) int { return deep(n+1) + 1 }\ndeep(0)", Kills, 0},
	{"map race", "", "m := map[int]int{}\nfor g := 0; g < 8; g++ {\n\tgo func() {\n\t\tfor i := 0; ; i++ {\n\t\t\tm[i%10] = i\n\t\t}\n\t}()\n}\nfor i := 0; ; i++ {\n\tm[i%10] = i\n}", Kills, 0},
	{"goroutine panic", "time", "go func() { panic(\"boom\") }()\ntime.Sleep(time.Second)", Kills, 0},
	{"goexit", "runtime", "runtime.Goexit()", Kills, 0},
	{"thread bomb", "runtime", "for {\n\tgo func() {\n\t\truntime.LockOSThread()\n\t\tselect {}\n\t}()\n}", Kills, 0},
	{"closed outputs", "os syscall", "os.Stdout.Close()\nos.Stderr.Close()\nsyscall.Close(1)\nsyscall.Close(2)\npanic(\"silent\")", Kills, 0},
	{"goroutine bomb", "", "for {\n\tgo func() { select {} }()\n}", Hangs, 0},
	{"fork bomb", "os os/exec", "for {\n\tcmd := exec.Command(\"/proc/self/exe\")\n\tcmd.ExtraFiles = []*os.File{os.NewFile(3, \"\")}\n\tcmd.Start()\n}", Hangs, 0},
	{"output flood", "fmt", "for {\n\tfmt.Println(\"flood flood flood flood flood\")\n}", Hangs, 0},
	{"closed connection", "syscall", "syscall.Close(3)\nfor {\n}", Hangs, 0},
	{"stopped", "syscall", "syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)\nselect {}", Hangs, 0},
	{"rubbish frames", "syscall", "for i := 0; i < 100; i++ {\n\tsyscall.Write(3, []byte{255, 255, 255, 255, 'O', byte(i)})\n}", Forges, 0},
	{"unknown frame", "syscall", "syscall.Write(3, []byte{0, 0, 0, 0, '?'})", Forges, 0},
	{"forged end", "syscall", "syscall.Write(3, append([]byte{28, 0, 0, 0, 'd'}, make([]byte, 28)...))\nfor {\n}", Forges, 0},
	{"forged ends", "syscall", "for i := 0; i < 50; i++ {\n\tsyscall.Write(3, append([]byte{28, 0, 0, 0, 'd'}, make([]byte, 28)...))\n}", Forges, 0},
	{"forged call", "syscall", "b := []byte(\"\\x01\\x00\\x00\\x00cos.Exit\\x00[[],{}]\")\nsyscall.Write(3, append([]byte{byte(len(b)), 0, 0, 0, 'q'}, b...))", Forges, 0},
	{"forged question", "syscall", "b := []byte(\"\\x01\\x00\\x00\\x00ts-5,-9,99999999999\")\nsyscall.Write(3, append([]byte{byte(len(b)), 0, 0, 0, 'q'}, b...))", Forges, 0},
	{"forged keeper", "syscall", "syscall.Write(3, []byte{4, 0, 0, 0, 'k', 1, 0, 0, 0})\nfor {\n}", Forges, 0},
	{"answers that nobody takes", "bytes syscall", "p := make([]int, 2)\nsyscall.Pipe(p)\nn, _ := syscall.Dup(3)\nsyscall.Dup3(p[0], 3, 0)\nvar all []byte\nfor i := range 9000 {\n\tcall := append([]byte{byte(i), byte(i >> 8), 1, 0}, \"cllm_query\\x00[[\\\"x\\\"],{}]\"...)\n\tall = append(append(all, byte(len(call)), 0, 0, 0, 'q'), call...)\n}\nall = append(append(all, 28, 0, 0, 0, 'd'), bytes.Repeat([]byte{0}, 28)...)\nfor len(all) > 0 {\n\tm, err := syscall.Write(n, all)\n\tif err == nil {\n\t\tall = all[m:]\n\t} else if err != syscall.EAGAIN {\n\t\tbreak\n\t}\n}\nselect {}", Forges, 0},
}

// goOddities are refused by the rules of snippets or by the compiler, at once.
var goOddities = map[string]string{
	"linkname":       "import _ \"unsafe\"\n//go:linkname exit os.runtime_beforeExit\nfunc exit(code int)\nexit(1)",
	"line directive": "//line CANARY:1\nvar x int = \"s\"",
	"assembly":       "import \"C\"\nfunc f()\nf()",
	"constant":       "const a = 1 << 100000000\nvar b = a",
	"array":          "var x [1 << 36]byte\nx[1] = 1",
	"operators":      "y := 1\nx := y" + strings.Repeat(" + y", 200000),
	"generic types":  "type T[A any] struct{ a A; n *T[[2]A] }\nvar x T[int]\n_ = x",
	"generic calls":  "func f[A any](n int, a A) { if n > 0 { f(n-1, [1]A{a}) } }\nf(3, 1)",
	"long":           "x := \"" + strings.Repeat("x", 2<<20) + "\"",
}
