package hostile

import (
	"fmt"
	"strings"
)

// doubled doubles a constant string until it has 10 GiB.
var doubled = func() string {
	var b strings.Builder
	b.WriteString("import \"fmt\"\nconst s0 = \"0123456789\"\n")
	for i := range 30 {
		fmt.Fprintf(&b, "const s%d = s%d + s%d\n", i+1, i, i)
	}
	return b.String() + "fmt.Println(len(s30))"
}()

var goSnippets = []Snippet{
	{
		Name: "sentinel errors", May: []string{OK}, Harm: "io.EOF is nil",
		Source: `import "io"
io.EOF = nil`,
	},
	{
		Name: "sentinel by pointer", May: []string{OK, Rejected}, Harm: "io.EOF is nil",
		Source: `import "io"
p := &io.EOF
*p = nil`,
	},
	{
		Name: "standard tables", May: []string{OK}, Harm: "unicode.Latin is nil",
		Source: `import "unicode"
unicode.Latin = nil`,
	},
	{
		Name: "default encodings", May: []string{OK, Raised, Rejected}, Harm: "base64 is broken",
		Source: `import "encoding/base64"
*base64.StdEncoding = base64.Encoding{}`,
	},
	{
		Name: "goroutine leak", May: []string{OK}, Harm: "goroutines stay",
		Source: `for i := 0; i < 5000; i++ {
	go func() { select {} }()
}`,
	},
	{
		Name: "busy goroutines", May: []string{OK, Limited}, Harm: "goroutines stay busy",
		Source: `for i := 0; i < 4; i++ {
	go func() { for {} }()
}`,
	},
	{
		Name: "stack overflow", May: []string{Crashed, Limited}, Harm: Grows,
		Source: `func f(n int) int { return f(n+1) + 1 }
f(0)`,
	},
	{
		Name: "mutual recursion", May: []string{Crashed, Limited}, Harm: Grows,
		Source: `func a() { b() }
func b() { a() }
a()`,
	},
	{
		Name: "huge slice", May: []string{Limited, Raised, Crashed}, Harm: Kills,
		Source: `b := make([]byte, 1<<40)
b[0] = 1`,
	},
	{
		Name: "huge slice, touched", May: []string{Limited}, Harm: Grows,
		Source: `var all [][]byte
for {
	b := make([]byte, 1<<24)
	for i := 0; i < len(b); i += 4096 { b[i] = 1 }
	all = append(all, b)
}`,
	},
	{
		Name: "huge constant", May: []string{Raised}, Harm: Hangs,
		Source: `import "fmt"
fmt.Println(1 << 1000000000)`,
	},
	{
		Name: "constant that wraps around", May: []string{Raised}, Harm: "-128",
		Source: `import "fmt"
const most int8 = 127
fmt.Println(most + 1)`,
	},
	{
		Name: "huge constant string", May: []string{Rejected}, Harm: Grows, Source: doubled,
	},
	{
		Name: "string flood", May: []string{Limited, Crashed}, Harm: Grows,
		Source: `s := "x"
for {
	s += s
}`,
	},
	{
		Name: "map flood", May: []string{Limited}, Harm: Grows,
		Source: `m := map[int][]int{}
for i := 0; ; i++ {
	m[i] = make([]int, 1000)
}`,
	},
	{
		Name: "concurrent map writes", May: []string{Crashed, Limited}, Harm: Kills,
		Source: `m := map[int]int{}
for g := 0; g < 8; g++ {
	go func() { for i := 0; ; i++ { m[i%10] = i } }()
}
for i := 0; ; i++ {
	m[i%10] = i
}`,
	},
	{Name: "endless loop", Source: "for {\n}", May: []string{Limited}, Harm: Hangs},
	{
		Name: "panic in a goroutine", May: []string{Crashed, Limited}, Harm: Kills,
		Source: `import "time"
go func() { panic("boom") }()
time.Sleep(time.Second)`,
	},
	{
		Name: "endless recovery", May: []string{Limited}, Harm: Hangs,
		Source: `import "fmt"
for {
	func() {
		defer func() { recover() }()
		panic(fmt.Sprint(1))
	}()
}`,
	},
	{
		Name: "unsafe", May: []string{Rejected}, Harm: Kills,
		Source: `import "unsafe"
p := (*int)(unsafe.Pointer(uintptr(0xdead0000)))
*p = 1`,
	},
	{
		Name: "os/exec", May: []string{Rejected}, Harm: Secret,
		Source: `import (
	"fmt"
	"os/exec"
)
out, _ := exec.Command("cat", "secret").Output()
fmt.Println(string(out))`,
	},
	{
		Name: "os", May: []string{Rejected}, Harm: Secret,
		Source: `import (
	"fmt"
	"os"
)
b, _ := os.ReadFile("secret")
fmt.Println(string(b))`,
	},
	{
		Name: "net", May: []string{Rejected}, Harm: "connected: true <nil>",
		Source: `import (
	"fmt"
	"net"
)
c, err := net.Dial("tcp", "PORT")
fmt.Println("connected:", c != nil, err)`,
	},
	{
		Name: "syscall", May: []string{Rejected}, Harm: "killed: <nil>",
		Source: `import (
	"fmt"
	"syscall"
)
fmt.Println("killed:", syscall.Kill(VICTIM, 9))`,
	},
	{
		Name: "log.Fatal", May: []string{Rejected}, Harm: Kills,
		Source: `import "log"
log.Fatal("the end")`,
	},
	{
		Name: "runtime", May: []string{Rejected}, Harm: Deadlocks,
		Source: `import "runtime"
runtime.Goexit()`,
	},
	{
		Name: "reflect", May: []string{Rejected}, Harm: "io.EOF is nil",
		Source: `import (
	"io"
	"reflect"
)
reflect.ValueOf(&io.EOF).Elem().SetZero()`,
	},
	{
		Name: "the interpreter itself", May: []string{Rejected}, Harm: Secret,
		Source: `import "github.com/traefik/yaegi/interp"
in := interp.New(interp.Options{GoPath: "gopath"})
in.Eval("import \"own\"")`,
	},
	{Name: "relative import", Source: "import \"./x\"", May: []string{Rejected}, Harm: Secret},
	{
		Name: "a package of the host", May: []string{Rejected}, Harm: Secret,
		Source: `import "own"`,
	},
	{
		Name: "template", May: []string{Rejected}, Harm: Secret,
		Source: `import (
	"fmt"
	"strings"
	"text/template"
)
var b strings.Builder
t, _ := template.ParseFiles("secret")
t.Execute(&b, nil)
fmt.Println(b.String())`,
	},
	{
		Name: "time zone files", May: []string{OK}, Harm: "a file was read",
		Source: `import "time"
_, err := time.LoadLocation("Zone")
if err == nil {
	panic("a file was read")
}`,
	},
	{
		Name: "output flood", May: []string{Limited}, Harm: Floods,
		Source: `import "fmt"
for {
	fmt.Println("flood flood flood flood")
}`,
	},
	{
		Name: "one huge line", May: []string{OK, Limited}, Harm: Floods,
		Source: `import (
	"fmt"
	"strings"
)
fmt.Print(strings.Repeat("x", 64<<20))`,
	},
	{Name: "deadlock", Source: "select {}", May: []string{Limited}, Harm: Deadlocks},
	{
		Name: "receive without a sender", Source: "<-make(chan int)",
		May: []string{Limited}, Harm: Deadlocks,
	},
	{
		Name: "locked twice", May: []string{Limited, Crashed}, Harm: Deadlocks,
		Source: `import "sync"
var mu sync.Mutex
mu.Lock()
mu.Lock()`,
	},
	{
		Name: "unlock of unlocked", May: []string{Crashed}, Harm: Kills,
		Source: `import "sync"
var mu2 sync.Mutex
mu2.Unlock()`,
	},
	{
		Name: "closed twice", May: []string{Crashed, Limited}, Harm: Kills,
		Source: `import "time"
c := make(chan int)
go func() {
	close(c)
	close(c)
}()
time.Sleep(time.Second)`,
	},
	{
		Name: "nil function", May: []string{Crashed, Limited, Rejected}, Harm: Kills,
		Source: `import "time"
var f func()
go func() { f() }()
time.Sleep(time.Second)`,
	},
	{
		Name: "expensive sleep", May: []string{Limited}, Harm: Hangs,
		Source: `import "time"
time.Sleep(time.Hour)`,
	},
	{
		Name: "host name taken", May: []string{Rejected},
		Harm:   "a host call is answered by the snippet",
		Source: `func Query(s string) (string, error) { return s, nil }`,
	},
	{
		Name: "the environment", May: []string{Rejected}, Harm: Secret,
		Source: `import (
	"fmt"
	"os"
)
fmt.Println(os.Getenv("RLM_SECRET"))`,
	},
	{Name: "os.Exit", Source: "import \"os\"\nos.Exit(3)", May: []string{Rejected}, Harm: Kills},
	{
		Name: "a symbolic link", May: []string{Rejected}, Harm: Secret,
		Source: `import (
	"fmt"
	"os"
)
os.Symlink("secret", "link")
b, _ := os.ReadFile("link")
fmt.Println(string(b))`,
	},
	{
		Name: "/proc", May: []string{Rejected}, Harm: Secret,
		Source: `import (
	"fmt"
	"io/ioutil"
)
b, _ := ioutil.ReadFile("/proc/self/environ")
fmt.Println(string(b))`,
	},
	{
		Name: "a socket", May: []string{Rejected}, Harm: "socket: true <nil>",
		Source: `import (
	"fmt"
	"syscall"
)
fd, err := syscall.Socket(2, 2, 0)
fmt.Println("socket:", fd > 0, err)`,
	},
	{
		Name: "ptrace", May: []string{Rejected}, Harm: "traced: <nil>",
		Source: `import (
	"fmt"
	"os"
	"syscall"
)
p, _ := os.StartProcess("/bin/sleep", []string{"sleep", "9"}, &os.ProcAttr{})
fmt.Println("traced:", syscall.PtraceAttach(p.Pid))
p.Kill()`,
	},
	{
		Name: "a fork", May: []string{Rejected}, Harm: "started: true <nil>",
		Source: `import (
	"fmt"
	"os"
)
p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "exit 0"}, &os.ProcAttr{})
fmt.Println("started:", p != nil, err)`,
	},
	{
		Name: "a disk flood", May: []string{Rejected}, Harm: "written: <nil>",
		Source: `import (
	"fmt"
	"os"
)
err := os.WriteFile("flood", make([]byte, 8<<20), 0600)
fmt.Println("written:", err)`,
	},
	{
		Name: "runtime/debug", May: []string{Rejected}, Harm: Kills,
		Source: `import "runtime/debug"
func f(n int) int { if n == 0 { return 0 }; return f(n-1) }
debug.SetMaxStack(1 << 10)
f(1000)`,
	},
}
