package gosuite

import (
	"strings"

	"github.com/rlmhq/rlm/internal/wall/jail"
)

// Attack attacks the wall of a Go program, its runtime or its connection. In a tier, no attack may
// print "ESCAPED"; how an attack ends does not matter.
type Attack struct {
	Name, Imports, Body string
	// Harm is its effect in a jail without some layers, as an unsupervised program.
	Harm    Harm
	Without jail.Layers
}

// The layers that stop attacks on files, and on connections. In a process namespace with the /proc
// of another one, a program cannot list its threads.
const (
	files = jail.Mounts | jail.Landlock | jail.Namespaces
	wires = jail.Network | jail.Seccomp | jail.Landlock
)

// Harm is the effect of an attack.
type Harm string

// The kinds of harm.
const (
	Escapes Harm = "escapes" // it prints ESCAPED
	Kills   Harm = "kills"   // its program crashes, along with everything in it
	Hangs   Harm = "hangs"   // it continues until it is killed, or until its memory is exhausted
	Forges  Harm = "forges"  // it writes to the connection what only the runtime may write
)

// Source returns the source of the attack as a snippet.
func (a Attack) Source() string { return a.Importing() + a.Body }

// Importing returns the source of the attack's imports.
func (a Attack) Importing() string {
	list := ""
	for _, path := range strings.Fields(a.Imports) {
		list += "import \"" + path + "\"\n"
	}
	return list
}

// Attacks lists all attacks. CANARY is a file of the host, DIR its folder, OPEN a folder that all
// users may write, PORT the port of a server, HOSTPID a process, and CACHE the folder of compiled
// packages.
var Attacks = []Attack{
	{"canary", "os", `b, err := os.ReadFile("CANARY")
if err == nil && len(b) > 0 {
	println("ESCAPED")
}`, Escapes, files},
	{"canary by root", "os", `roots := []string{"/proc/1/root", "/proc/self/root", "/proc/self/cwd/../../../..",
	"/proc/self/fd/3/.."}
for _, p := range roots {
	if _, err := os.ReadFile(p + "CANARY"); err == nil {
		println("ESCAPED")
	}
}`, Escapes, files},
	{"canary by symlink", "os", `os.Chdir("OPEN")
os.Symlink("CANARY", "link")
_, err := os.ReadFile("link")
if err == nil {
	println("ESCAPED")
}`, Escapes, files},
	{"passwd", "os", `_, err := os.ReadFile("/etc/passwd")
if err == nil {
	println("ESCAPED")
}`, Escapes, files},
	{"environment", "os", `b, _ := os.ReadFile("/proc/1/environ")
if os.Getenv("RLM_HOSTILE") != "" || len(b) > 0 {
	println("ESCAPED")
}`, Escapes, 0},
	{"own binary", "os", `exe, _ := os.Readlink("/proc/self/exe")
if os.Remove(exe) == nil {
	println("ESCAPED")
}`, Escapes, files},
	{"folders", "os", `for _, dir := range []string{"CACHE", "DIR"} {
	if _, err := os.ReadDir(dir); err == nil {
		println("ESCAPED")
	}
}`, Escapes, files},
	{"writing to the host", "os", `write := func(path string) bool { return os.WriteFile(path, nil, 0o644) == nil }
if write("OPEN/go") || write("/usr/x") || write("/x") {
	println("ESCAPED")
}`, Escapes, files},
	{"dial", "net", `c, err := net.Dial("tcp", "PORT")
if err == nil {
	println("ESCAPED")
	c.Close()
}`, Escapes, wires},
	{"udp", "net", `c, err := net.Dial("udp", "PORT")
if err == nil {
	println("ESCAPED")
	c.Close()
}`, Escapes, wires},
	{"listen", "net", `c, err := net.Listen("tcp", "127.0.0.1:0")
if err == nil {
	println("ESCAPED")
	c.Close()
}`, Escapes, wires},
	{"http", "net/http", `_, err := http.Get("http://PORT/")
if err == nil {
	println("ESCAPED")
}`, Escapes, wires},
	{"socket of the kernel", "syscall", `_, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW, 0)
if err == nil {
	println("ESCAPED")
}`, Escapes, jail.Seccomp},
	{"abstract socket", "syscall", `_, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
if err == nil {
	println("ESCAPED")
}`, Escapes, jail.Seccomp},
	{"exec of a copy", "os os/exec", `os.Chdir("OPEN")
b, _ := os.ReadFile("/proc/self/exe")
os.WriteFile("copy", b, 0o755)
if exec.Command("./copy").Run() == nil {
	println("ESCAPED")
}`, Escapes, files},
	{"ptrace", "os/exec runtime syscall", `runtime.LockOSThread()
p := exec.Command("/bin/sleep", "9")
p.Start()
if syscall.PtraceAttach(p.Process.Pid) == nil || syscall.PtraceAttach(1) == nil {
	println("ESCAPED")
}
p.Process.Kill()`, Escapes, jail.Seccomp},
	{"mount", "syscall", `if syscall.Mount("none", "/tmp", "tmpfs", 0, "") == nil {
	println("ESCAPED")
}`, Escapes, jail.Seccomp | jail.Landlock | jail.Privileges},
	{"namespaces", "os/exec syscall", `p := exec.Command("/bin/true")
p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
if p.Run() == nil {
	println("ESCAPED")
}`, Escapes, jail.Seccomp},
	{"becoming root", "os os/exec strings syscall", `p := exec.Command("/usr/bin/id", "-u")
p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
p.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
b, _ := p.Output()
if strings.TrimSpace(string(b)) == "0" {
	println("ESCAPED")
}`, Escapes, files | jail.Seccomp | jail.Privileges},
	{"a signal to the host", "syscall", `err := syscall.Kill(HOSTPID, 0)
if err == nil || err == syscall.EPERM {
	println("ESCAPED")
}`, Escapes, files},
	{"core", "syscall", `l := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
if syscall.Setrlimit(syscall.RLIMIT_CORE, &l) == nil {
	println("ESCAPED")
}`, Escapes, jail.Rlimits},
	{"disk flood", "os strconv", `os.Chdir("OPEN")
n := 0
for i := 0; i < 2; i++ {
	f, err := os.Create("flood" + strconv.Itoa(i))
	if err != nil {
		break
	}
	m, _ := f.Write(make([]byte, 48<<20))
	n += m
}
if n > 64<<20 {
	println("ESCAPED")
}`, Escapes, files},
	{"many files", "os strconv", `os.Chdir("OPEN")
n := 0
for i := 0; i < 5000; i++ {
	if os.WriteFile("f"+strconv.Itoa(i), nil, 0o600) == nil {
		n++
	}
}
if n == 5000 {
	println("ESCAPED")
}`, Escapes, files},
	{"kill everybody", "os syscall", `syscall.Kill(1, syscall.SIGKILL)
syscall.Kill(os.Getppid(), syscall.SIGKILL)
syscall.Kill(-1, syscall.SIGKILL)
syscall.Kill(os.Getpid(), syscall.SIGKILL)`, Kills, 0},
	{"wild pointer", "unsafe", "*(*int)(unsafe.Pointer(uintptr(8))) = 1", Kills, 0},
	{"smashed runtime", "unsafe", `f := func() {}
p := *(*uintptr)(unsafe.Pointer(&f))
for i := uintptr(0); i < 1<<20; i += 8 {
	*(*uintptr)(unsafe.Pointer(p - i)) = 0
}`, Kills, 0},
	{"jump into data", "unsafe", `code := []byte{0x90, 0xc3}
p := &code[0]
pp := &p
f := *(*func())(unsafe.Pointer(&pp))
f()`, Kills, 0},
	{"stack overflow", "", `var deep func(int) int
deep = func(n int) int { return deep(n+1) + 1 }
deep(0)`, Kills, 0},
	{"map race", "", `m := map[int]int{}
for g := 0; g < 8; g++ {
	go func() {
		for i := 0; ; i++ {
			m[i%10] = i
		}
	}()
}
for i := 0; ; i++ {
	m[i%10] = i
}`, Kills, 0},
	{"goroutine panic", "time", "go func() { panic(\"boom\") }()\ntime.Sleep(time.Second)", Kills, 0},
	{"goexit", "runtime", "runtime.Goexit()", Kills, 0},
	{"thread bomb", "runtime", `for {
	go func() {
		runtime.LockOSThread()
		select {}
	}()
}`, Kills, 0},
	{"closed outputs", "os syscall", `os.Stdout.Close()
os.Stderr.Close()
syscall.Close(1)
syscall.Close(2)
panic("silent")`, Kills, 0},
	{"goroutine bomb", "", "for {\n\tgo func() { select {} }()\n}", Hangs, 0},
	{"fork bomb", "os os/exec", `for {
	cmd := exec.Command("/proc/self/exe")
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "")}
	cmd.Start()
}`, Hangs, 0},
	{"output flood", "fmt", "for {\n\tfmt.Println(\"flood flood flood flood flood\")\n}", Hangs, 0},
	{"closed connection", "syscall", "syscall.Close(3)\nfor {\n}", Hangs, 0},
	{"stopped", "syscall", "syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)\nselect {}", Hangs, 0},
	{"rubbish frames", "syscall", `for i := 0; i < 100; i++ {
	syscall.Write(3, []byte{255, 255, 255, 255, 'O', byte(i)})
}`, Forges, 0},
	{"unknown frame", "syscall", "syscall.Write(3, []byte{0, 0, 0, 0, '?'})", Forges, 0},
	{"forged end", "syscall", `syscall.Write(3, append([]byte{28, 0, 0, 0, 'd'}, make([]byte, 28)...))
for {
}`, Forges, 0},
	{"forged ends", "syscall", `for i := 0; i < 50; i++ {
	syscall.Write(3, append([]byte{28, 0, 0, 0, 'd'}, make([]byte, 28)...))
}`, Forges, 0},
	{"forged call", "syscall", `b := []byte("\x01\x00\x00\x00cos.Exit\x00[[],{}]")
syscall.Write(3, append([]byte{byte(len(b)), 0, 0, 0, 'q'}, b...))`, Forges, 0},
	{"forged question", "syscall", `b := []byte("\x01\x00\x00\x00ts-5,-9,99999999999")
syscall.Write(3, append([]byte{byte(len(b)), 0, 0, 0, 'q'}, b...))`, Forges, 0},
	{"forged keeper", "syscall", `syscall.Write(3, []byte{4, 0, 0, 0, 'k', 1, 0, 0, 0})
for {
}`, Forges, 0},
	{"answers that nobody takes", "bytes syscall", `p := make([]int, 2)
syscall.Pipe(p)
n, _ := syscall.Dup(3)
syscall.Dup3(p[0], 3, 0)
var all []byte
for i := range 9000 {
	call := append([]byte{byte(i), byte(i >> 8), 1, 0}, "cllm_query\x00[[\"x\"],{}]"...)
	all = append(append(all, byte(len(call)), 0, 0, 0, 'q'), call...)
}
all = append(append(all, 28, 0, 0, 0, 'd'), bytes.Repeat([]byte{0}, 28)...)
for len(all) > 0 {
	m, err := syscall.Write(n, all)
	if err == nil {
		all = all[m:]
	} else if err != syscall.EAGAIN {
		break
	}
}
select {}`, Forges, 0},
}

// goOddities are snippets that the rules of snippets or the compiler refuse immediately.
var goOddities = map[string]string{
	"linkname": `import _ "unsafe"
//go:linkname exit os.runtime_beforeExit
func exit(code int)
exit(1)`,
	"line directive": "//line CANARY:1\nvar x int = \"s\"",
	"assembly":       "import \"C\"\nfunc f()\nf()",
	"constant":       "const a = 1 << 100000000\nvar b = a",
	"array":          "var x [1 << 36]byte\nx[1] = 1",
	"operators":      "y := 1\nx := y" + strings.Repeat(" + y", 200000),
	"generic types":  "type T[A any] struct{ a A; n *T[[2]A] }\nvar x T[int]\n_ = x",
	"generic calls":  "func f[A any](n int, a A) { if n > 0 { f(n-1, [1]A{a}) } }\nf(3, 1)",
	"long":           "x := \"" + strings.Repeat("x", 2<<20) + "\"",
}
