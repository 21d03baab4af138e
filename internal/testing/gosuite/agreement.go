package gosuite

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// goFiles are complete programs. They use the same names, so that in one session, each program
// replaces the names of earlier programs.
var goFiles = []string{
	`import "fmt"
type Shape interface{ Area() float64 }
type Square struct{ S float64 }
type Circle struct{ R float64 }
func (s Square) Area() float64 { return s.S * s.S }
func (c *Circle) Area() float64 { return 3 * c.R * c.R }
func main() {
	for _, s := range []Shape{Square{2}, &Circle{1}} { fmt.Printf("%T %v %#v %.2f\n", s, s, Square{1}, s.Area()) }
}`,
	`import "fmt"
type Base struct{ ID int }
func (b Base) Describe() string { return fmt.Sprintf("base %d", b.ID) }
type Square struct {
	Base
	*Inner
	Name string
}
type Inner struct{ Deep map[string]int }
func main() {
	s := Square{Base: Base{7}, Inner: &Inner{map[string]int{"b": 1, "a": 2}}, Name: "x"}
	fmt.Println(s.Describe(), s.Deep, s.Inner.Deep["a"], s.Base)
	fmt.Printf("%+v %T\n", s.Base, s)
}`,
	`import ("fmt"; "cmp"; "slices")
type Number interface{ ~int | ~float64 }
func Sum[T Number](xs ...T) (t T) { for _, x := range xs { t += x }; return }
type Pair[K cmp.Ordered, V any] struct { Key K; Val V }
func main() {
	ps := []Pair[string, int]{{"b", 2}, {"a", 1}}
	slices.SortFunc(ps, func(x, y Pair[string, int]) int { return cmp.Compare(x.Key, y.Key) })
	fmt.Printf("%v %T %v %v\n", ps, ps[0], Sum(1, 2, 3), Sum(1.5, 2))
}`,
	`import ("encoding/json"; "fmt")
type Temp float64
func (t Temp) MarshalJSON() ([]byte, error) { return []byte(fmt.Sprintf("\"%.1fC\"", float64(t))), nil }
type Base struct { ID int ` + "`json:\"id\"`" + " }\ntype Doc struct { Base; T Temp; Tags []string " +
		"`json:\"tags,omitempty\"`" + `; hidden int }
func main() {
	b, err := json.Marshal(Doc{Base{3}, 21.5, nil, 1})
	fmt.Println(string(b), err)
	var d map[string]any
	fmt.Println(json.Unmarshal(b, &d), d["id"], d)
}`,
	`import ("errors"; "fmt"; "io"; "os")
type MyErr struct{ Code int }
func (e *MyErr) Error() string { return fmt.Sprint("code ", e.Code) }
func fail() error { return fmt.Errorf("wrapped: %w", &MyErr{4}) }
func main() {
	var m *MyErr
	fmt.Println(errors.As(fail(), &m), m.Code, fail(), errors.Is(fmt.Errorf("x %w", io.EOF), io.EOF))
	_, err := os.Open("/no/such/file")
	fmt.Println(err, errors.Is(err, os.ErrNotExist))
}`,
	`import ("fmt"; "sync")
func worker(in <-chan int, out chan<- int, wg *sync.WaitGroup) { defer wg.Done(); for n := range in { out <- n * n } }
func main() {
	in, out := make(chan int), make(chan int, 100)
	var wg sync.WaitGroup
	for range 4 { wg.Add(1); go worker(in, out, &wg) }
	for i := range 20 { in <- i }
	close(in); wg.Wait(); close(out)
	total := 0
	for v := range out { total += v }
	fmt.Println(total)
}`,
	`import ("fmt"; "iter")
func Count(n int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i := range n { if !yield(i, fmt.Sprint("v", i)) { return } }
	}
}
func main() { for i, s := range Count(10) { if i == 3 { break }; fmt.Print(i, s, " ") }; fmt.Println() }`,
	`import "fmt"
var a = b * 2
var b = f()
var log []string
func f() int { log = append(log, "f"); return 21 }
func init() { log = append(log, "init1") }
func init() { log = append(log, "init2") }
func main() { fmt.Println(a, b, log) }`,
	`import "fmt"
func div(a, b int) (n int, err error) {
	defer func() { if r := recover(); r != nil { err = fmt.Errorf("caught: %v", r) } }()
	return a / b, nil
}
func main() { for i := range 3 { defer fmt.Println("deferred", i) }; fmt.Println(div(1, 0)); fmt.Println(div(9, 3)) }`,
	`import ("os"; "text/template")
type Item struct{ Name string; Price float64 }
func (i Item) Tax() float64 { return i.Price / 5 }
func main() {
	t := template.Must(template.New("t").Parse("{{range .}}{{.Name | printf \"%-5s\"}}|{{.Tax}}\n{{end}}"))
	t.Execute(os.Stdout, []Item{{"ab", 10}, {"c", 2.5}})
}`,
	"import (\"fmt\"; \"reflect\")\ntype Item struct { Name string " + "`k:\"v\"`" + `; N int }
func main() {
	t := reflect.TypeOf(Item{})
	for i := range t.NumField() { fmt.Println(t.Field(i).Name, t.Field(i).Type, t.Field(i).Tag.Get("k")) }
	fmt.Println(t, t.Kind(), t.Name(), t.PkgPath(), reflect.DeepEqual(Item{"a", 1}, Item{"a", 1}))
}`,
	`import ("bufio"; "fmt"; "sort"; "strings")
func main() {
	counts := map[string]int{}
	sc := bufio.NewScanner(strings.NewReader("the cat\nthe dog the end"))
	sc.Split(bufio.ScanWords)
	for sc.Scan() { counts[sc.Text()]++ }
	keys := []string{}
	for k := range counts { keys = append(keys, k) }
	sort.Slice(keys, func(i, j int) bool {
		a, b := counts[keys[i]], counts[keys[j]]
		return a > b || a == b && keys[i] < keys[j]
	})
	for _, k := range keys { fmt.Printf("%-4s %d\n", k, counts[k]) }
}`,
	`import ("fmt"; "math/big"; "strconv"; "time")
func main() {
	n := new(big.Int).Exp(big.NewInt(2), big.NewInt(100), nil)
	fmt.Println(n, strconv.Quote("é\n"), time.Date(2024, 2, 29, 1, 2, 3, 0, time.UTC).Format(time.RFC1123))
	fmt.Printf("%08.3f|%x|%q|%U|%e|%6d|%-6s|%+d\n", 3.14159, "hi", 'x', 'é', 12345.678, 42, "ab", 5)
}`,
	`import "fmt"
type Node[T any] struct { val T; next *Node[T] }
type List[T any] struct { head *Node[T]; size int }
func (l *List[T]) Push(v T) { l.head = &Node[T]{v, l.head}; l.size++ }
func (l *List[T]) Each(f func(T)) { for n := l.head; n != nil; n = n.next { f(n.val) } }
func main() {
	l := &List[string]{}; l.Push("a"); l.Push("b")
	l.Each(func(s string) { fmt.Print(s) }); fmt.Println(l.size); fmt.Printf("%T\n", l)
}`,
	`import "fmt"
type Weekday int
const ( Sunday Weekday = iota; Monday )
func (d Weekday) String() string { return [...]string{"Sun", "Mon"}[d] }
func main() {
	fmt.Println(Monday, Weekday(0)); fmt.Printf("%d %v %s %T\n", Monday, Monday, Monday, Monday)
outer:
	for i := range 3 {
		for j := range 3 { if j == 2 { continue outer }; if i == 2 { break outer }; fmt.Print(i, j, ";") }
	}
	fmt.Println()
}`,
	`import ("fmt"; "os")
func main() { defer fmt.Println("never"); fmt.Println("exiting"); fmt.Fprintln(os.Stderr, "e"); os.Exit(3) }`,
	`import "fmt"
func main() { fmt.Println("before"); var m map[string]int; m["a"] = 1; fmt.Println("after") }`,
	`import ("fmt"; "context"; "time")
func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	select { case <-ctx.Done(): fmt.Println(ctx.Err()); case <-time.After(time.Hour): fmt.Println("late") }
}`,
	`import ("fmt"; "regexp"; "strings"; "unicode")
func main() {
	re := regexp.MustCompile("(\\w+)@(\\w+)\\.com")
	fmt.Println(re.FindAllStringSubmatch("a@b.com c@d.com", -1), re.ReplaceAllString("x@y.com", "$2"))
	lower := strings.Map(func(r rune) rune { if unicode.IsUpper(r) { return -1 }; return r }, "aBcD")
	fmt.Println(lower, []rune("hé"), []byte("hé"))
}`,
	`import "fmt"
type Matrix [2][2]int
func (m Matrix) Mul(o Matrix) (r Matrix) {
	for i := range 2 { for j := range 2 { for k := range 2 { r[i][j] += m[i][k] * o[k][j] } } }; return
}
type Op func(int, int) int
func main() {
	m := Matrix{{1, 1}, {1, 0}}
	f := m.Mul
	fmt.Println(f(m).Mul(m), m == Matrix{{1, 1}, {1, 0}})
	ops := map[string]Op{"+": func(a, b int) int { return a + b }}
	fmt.Printf("%d %T %v\n", ops["+"](1, 2), ops["+"], struct{ A, B any }{1, nil})
}`,
	`import "fmt"
func main() {
	fs := []func(){}; for i := 0; i < 3; i++ { fs = append(fs, func() { fmt.Print(i, " ") }) }
	for _, f := range fs { f() }
	x := []int{1, 2, 3, 4}; y := append(x[:1:1], 9); fmt.Println(x, y, min(3, 1, 2), max(1.5, 2))
	clear(x); fmt.Println(x, 7/-2, -7%3, uint8(200)+100>>1)
}`,
}

// testAgreement runs each program with the go command, and all of them in one session.
func testAgreement(t *testing.T, tier tiers.Tier) {
	skip.UnderRace(t)
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command to compare with")
	}
	s := Open(t, tier, tiers.Config{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module programs\n\ngo 1.24\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, body := range goFiles {
		source := "package main\n\n" + body + "\n"
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		build := exec.CommandContext(t.Context(), "go", "build", "-o", "program", ".")
		build.Dir = dir
		if said, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}

		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "program")).Output()
		var exit *exec.ExitError
		status := tiers.StatusOK
		if errors.As(err, &exit) {
			status = map[int]tiers.Status{2: tiers.StatusRaised, 3: tiers.StatusExited}[exit.ExitCode()]
		}

		r := RunSnippet(t, s, source)
		if r.Stdout != string(out) || r.Status != status || r.Lost != nil {
			t.Errorf("%s\nhere %s %q %+v %+v\nthere %s %q", source, r.Status, r.Stdout, r.Exception,
				r.Lost, status, out)
		}
	}
}
