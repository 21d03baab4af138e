package worker

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// goPrograms are snippets that the interpreter must run as the compiler's programs do, or
// reject.
var goPrograms = []string{
	"var fs []func() int\nfor i := range []int{1,2,3} { i := i; fs = append(fs, func() int { " +
		"return i }) }\nfor _, f := range fs { fmt.Print(f(), \" \") }",
	"var fs []func() int\nfor _, v := range []int{4,5,6} { w := v*2; fs = append(fs, func() int " +
		"{ return w }) }\nfor _, f := range fs { fmt.Print(f(), \" \") }",
	"var ps []*int\nfor _, v := range []int{4,5,6} { w := v*2; ps = append(ps, &w) }\n" +
		"for _, p := range ps { fmt.Print(*p, \" \") }",
	"var wg sync.WaitGroup\nres := make([]int, 5)\nfor i := range res { i := i; wg.Add(1); go " +
		"func() { defer wg.Done(); res[i] = i*i }() }\nwg.Wait()\nfmt.Println(res)",
	"var fs []func() int\nfor _, v := range []int{4,5,6} { fs = append(fs, func() int { return v " +
		"}) }\nfor _, f := range fs { fmt.Print(f(), \" \") }",
	"var fs []func() int\nfor i := 0; i < 3; i++ { fs = append(fs, func() int { return i }) }\n" +
		"for _, f := range fs { fmt.Print(f(), \" \") }",
	"for i := 0; i < 3; i++ { j := i; defer func() { fmt.Print(j) }() }",
	"type P struct { X, Y int; N string }\nm := map[string]P{\"a\": {1,2,\"z\"}}\n" +
		"fmt.Printf(\"%v %+v\\n\", m, m)",
	"var e error\nfmt.Println(e == nil, e)\ne = errors.New(\"x\")\nfmt.Println(e)",
	"x := []int{1,2,3,4}\ny := x[1:3]\ny = append(y, 9)\nfmt.Println(x, y, len(y), cap(y))",
	"a := [3]int{1,2,3}\nb := a\nb[0] = 9\nfmt.Println(a, b, a == [3]int{1,2,3})",
	"s := \"héllo\"\nfor i, r := range s { fmt.Print(i, string(r), \" \") }\n" +
		"fmt.Println(len(s), s[1])",
	"var i interface{} = 3\nswitch v := i.(type) { case string: fmt.Println(\"s\", v); case int: " +
		"fmt.Println(\"i\", v+1) }",
	"n, ok := interface{}(\"x\").(int)\nfmt.Println(n, ok)",
	"var u8 uint8 = 250\nu8 += 10\nfmt.Println(u8, 7/2, -7/2, -7%3, 1<<10, 6&^2)",
	"fmt.Printf(\"%5.2f|%-5d|%05d|%x|%q|%v|%8s|%t\\n\", 3.14159, 42, 42, 255, \"hi\", " +
		"[]string{\"a\"}, \"r\", true)",
	"words := strings.Fields(\"the cat the dog\")\nc := map[string]int{}\n" +
		"for _, w := range words { c[w]++ }\nkeys := make([]string, 0)\n" +
		"for k := range c { keys = append(keys, k) }\nsort.Strings(keys)\n" +
		"for _, k := range keys { fmt.Println(k, c[k]) }",
	"type T struct { V int; K []string }\nt := &T{V: 1}\nt.K = append(t.K, \"x\")\nt2 := *t\n" +
		"t2.V = 5\nfmt.Println(t.V, t2.V, t.K, *t)",
	"defer func() { r := recover(); fmt.Println(\"rec\", r) }()\nvar m map[string]int\n" +
		"m[\"a\"] = 1",
	"ch := make(chan int, 3)\ngo func() { for i := 0; i < 3; i++ { ch <- i }; close(ch) }()\n" +
		"for v := range ch { fmt.Print(v) }",
	"people := []struct{ N string; A int }{{\"x\", 3}, {\"y\", 1}}\n" +
		"sort.Slice(people, func(i, j int) bool { return people[i].A < people[j].A })\n" +
		"fmt.Println(people)",
	"const ( A = iota; B; C )\nfmt.Println(A, B, C)",
	"func() {\n" + strings.Repeat("const a = 1\n_ = a\n{\n", 12) + strings.Repeat("}\n", 12) +
		"fmt.Println(2)\n}()",
	"type Color int\nconst ( Red Color = iota; Green )\nfmt.Println(Red, Green, Green == 1)",
	"re := regexp.MustCompile(`(\\w+)@(\\w+)`)\nfmt.Println(re.FindAllStringSubmatch(\"a@b " +
		"c@d\", -1))",
	"var f float64 = 10\nfmt.Println(f/4, f/3, 1e21, 1e20, float32(0.1), math.Inf(1), " +
		"math.Sqrt(2))",
	"outer:\nfor i := 0; i < 3; i++ { for j := 0; j < 3; j++ { if j == 2 { continue outer }; if " +
		"i == 2 { break outer }; fmt.Print(i, j, \" \") } }",
	"x := 5\np := &x\n*p = 7\nfmt.Println(x)\nfunc() { x++ }()\nfmt.Println(x)",
	"m := map[[2]int]string{{1,2}: \"a\"}\nfmt.Println(m[[2]int{1,2}])",
	"type N struct { L, R *N; V int }\nn := &N{V: 1, L: &N{V: 2}}\nfmt.Println(n.L.V, n.R == nil)",
	"var sb strings.Builder\nfmt.Fprintf(&sb, \"%d-%s\", 3, \"x\")\nsb.WriteString(\"!\")\n" +
		"fmt.Println(sb.String())",
	"x := []int{3,1,2}\nsort.Sort(sort.Reverse(sort.IntSlice(x)))\nfmt.Println(x)",
	"d := 90 * time.Minute\nfmt.Println(d, d.Hours())\nt := time.Date(2024, 2, 29, 1, 2, 3, 0, " +
		"time.UTC)\nfmt.Println(t, t.AddDate(1,0,0).Format(\"2006-01-02\"), t.Weekday())",
	"sw := 3\nswitch { case sw > 2: fmt.Println(\"a\"); fallthrough; case sw > 10: " +
		"fmt.Println(\"b\"); default: fmt.Println(\"c\") }",
	"b := []byte(\"abc\")\nb[0] = 'z'\nfmt.Println(string(b), b)",
	"var arr [2][3]int\narr[1][2] = 5\nfor _, row := range arr { fmt.Println(row) }",
	"f := func(xs ...int) (s int) { for _, x := range xs { s += x }; return }\n" +
		"fmt.Println(f(), f(1,2), f([]int{4,5}...))",
	"s := []string{\"b\",\"a\"}\nt := append([]string(nil), s...)\nsort.Strings(t)\n" +
		"fmt.Println(s, t, strings.Join(t, \",\"))",
	"var x interface{}\njson.Unmarshal([]byte(`{\"a\":[1,2.5,\"x\",null,true]}`), &x)\n" +
		"fmt.Println(x)\nb, _ := json.MarshalIndent(x, \"\", \" \")\nfmt.Println(string(b))",
	"i := 10\nif i := 5; i > 3 { fmt.Println(i) }\nfmt.Println(i)",
	"a, b := 1, 2\na, b = b, a\nfmt.Println(a, b)",
	"x := []int{0,1,2}\ni := 0\ni, x[i] = 2, 7\nfmt.Println(i, x)",
	"type A struct { X int }\ntype B struct { A; Y int }\nb := B{A{1}, 2}\nfmt.Println(b.X, b)",
	"s := make([][]int, 2)\nfor i := range s { s[i] = make([]int, 2); s[i][0] = i }\n" +
		"fmt.Println(s)",
	"r, _ := strconv.Atoi(\"12x\")\n_, err := strconv.Atoi(\"12x\")\nfmt.Println(r, err)",
	"c := csv.NewReader(strings.NewReader(\"a,b\\n1,2\\n\"))\nrows, err := c.ReadAll()\n" +
		"fmt.Println(rows, err)",
	"sc := bufio.NewScanner(strings.NewReader(\"l1\\nl2\"))\n" +
		"for sc.Scan() { fmt.Println(sc.Text()) }",
	"var mu sync.Mutex\nvar once sync.Once\nmu.Lock(); mu.Unlock()\n" +
		"once.Do(func() { fmt.Println(\"once\") })\nonce.Do(func() { fmt.Println(\"once\") })",
	"ctx, cancel := context.WithCancel(context.Background())\ncancel()\n<-ctx.Done()\n" +
		"fmt.Println(ctx.Err())",
	"select { case v := <-make(chan int): fmt.Println(v); case <-time.After(time.Millisecond): " +
		"fmt.Println(\"timeout\") }",
	"type S struct { Name string `json:\"name\"`; Age int `json:\"age,omitempty\"` }\n" +
		"b, err := json.Marshal([]S{{\"x\", 0}, {\"y\", 2}})\nfmt.Println(string(b), err)",
	"var p *struct{ X int }\ndefer func() { fmt.Println(recover() != nil) }()\nfmt.Println(p.X)",
	"x := map[string][]int{}\nx[\"a\"] = append(x[\"a\"], 1, 2)\ndelete(x, \"b\")\n" +
		"fmt.Println(x, len(x))",
	"z := complex(1, 2)\nfmt.Println(z*z, real(z))",
	"fmt.Println(strings.Map(func(r rune) rune { if r == 'a' { return 'b' }; return r }, " +
		"\"banana\"))",
	"h := sha256.Sum256([]byte(\"x\"))\nfmt.Println(hex.EncodeToString(h[:4]))",
	"var iface fmt.Stringer\nfmt.Println(iface == nil)",
	"n := new(big.Int)\nn.Exp(big.NewInt(2), big.NewInt(100), nil)\nfmt.Println(n)",
	"func() { defer fmt.Println(\"d1\"); defer fmt.Println(\"d2\"); fmt.Println(\"body\") }()",
	"x := 3\nf := func() func() int { return func() int { x++; return x } }()\nf(); f()\n" +
		"fmt.Println(x)",
	"type Stack struct { items []int }\npush := func(s *Stack, v int) { s.items = " +
		"append(s.items, v) }\ns := Stack{}\npush(&s, 1); push(&s, 2)\nfmt.Println(s)",
	"var x uint = 1\nfmt.Println(x<<3, 1<<x, ^0, 0x10, 0b11, 0o17, 1_000)",
	"a := []int{1,2,3,4,5}\ncopy(a[1:], a)\nfmt.Println(a, a[:2:3])",
	"for i, c := range []byte(\"ab\") { fmt.Print(i, c) }",
	"var e1 = fmt.Errorf(\"a: %w\", io.EOF)\nfmt.Println(errors.Is(e1, io.EOF), " +
		"errors.Unwrap(e1) == io.EOF)",
	"fmt.Println(\"a\" < \"b\", \"a\"+\"b\", \"abc\"[1:], strings.Repeat(\"x\", 3), 'a', " +
		"string(rune(97)))",
	"fmt.Println(math.MaxInt64, math.Pi, uint64(math.MaxUint64))",
	"fmt.Println(utf8.RuneCountInString(\"héé\"), unicode.IsUpper('A'), strings.Title(\"ab cd\"))",
	"fmt.Printf(\"%T %T %T\\n\", 1, \"a\", []int{})",
	"var f func(int) int\nf = func(n int) int { if n < 2 { return n }; return f(n-1) + f(n-2) }\n" +
		"fmt.Println(f(15))",
	"l := list.New()\nl.PushBack(1)\nl.PushFront(0)\nfor e := l.Front(); e != nil; e = e.Next() " +
		"{ fmt.Print(e.Value) }",
	"x := 2.5\nfmt.Println(int(x), int64(x*2), float64(3)/2, 3/2*2.0)",
	"type M map[string]int\nm := M{\"a\":1}\nm[\"b\"]++\nfmt.Println(m)",
	"type F func(int) int\nvar f F = func(i int) int { return i + 1 }\nfmt.Println(f(2))",
	"rows := [][]string{{\"a\",\"1\"},{\"b\",\"2\"}}\ntotal := 0\n" +
		"for _, r := range rows { n, err := strconv.Atoi(r[1]); if err != nil { continue }; " +
		"total += n }\nfmt.Println(total)",
	"var a [5]int\nfor i := range a { a[i] = i }\ns := a[1:4]\ns[0] = 100\nfmt.Println(a, s)",
	"goto done\nfmt.Println(\"skipped\")\ndone:\nfmt.Println(\"end\")",
	"x := struct{ A int; B struct{ C string } }{1, struct{ C string }{\"q\"}}\n" +
		"fmt.Println(x.B.C, x)",
	"x := 1\n{ x := 2; x++; _ = x }\nfmt.Println(x)",
	"var wg sync.WaitGroup\nch := make(chan int)\nfor w := 0; w < 3; w++ { wg.Add(1); go func(id " +
		"int) { defer wg.Done(); ch <- id }(w) }\ngo func() { wg.Wait(); close(ch) }()\nt := 0\n" +
		"for v := range ch { t += v }\nfmt.Println(t)",
	"var cnt atomic.Int64\nvar wg sync.WaitGroup\nfor i := 0; i < 10; i++ { wg.Add(1); go func() " +
		"{ defer wg.Done(); cnt.Add(1) }() }\nwg.Wait()\nfmt.Println(cnt.Load())",
	"var wg sync.WaitGroup\nvar n atomic.Int64\nfor i := 0; i < 300; i++ { k := int64(i); " +
		"wg.Add(1); go func() { defer wg.Done(); n.Add(k) }() }\nwg.Wait()\nfmt.Println(n.Load())",
	"var wg sync.WaitGroup\nvar n atomic.Int64\nrun := func(f func(int64) error) { wg.Add(1); go " +
		"func() { defer wg.Done(); f(2) }() }\nfor _, k := range []int64{1, 2, 3} { for j := 0; " +
		"j < 100; j++ { run(func(m int64) error { n.Add(k * m); return nil }) } }\nwg.Wait()\n" +
		"fmt.Println(n.Load())",
	"var wg sync.WaitGroup\nout := make([]string, 3)\nfor i, w := range []string{\"a\", \"b\", " +
		"\"c\"} { wg.Add(1); go func(i int, w string) { defer wg.Done()\n" +
		" for j := 0; j < 2; j++ { out[i] += func() string { return w }() } }(i, w) }\n" +
		"wg.Wait()\nfmt.Println(out)",
	"var wg sync.WaitGroup\nvar n atomic.Int64\nf := func(k int64) { defer wg.Done(); n.Add(k) " +
		"}\ng := func(k int64) { defer wg.Done(); n.Add(1000 * k) }\nh := f\n" +
		"for i := 0; i < 100; i++ { wg.Add(2); h = f; go h(1); h = g; go h(1) }\nwg.Wait()\n" +
		"fmt.Println(n.Load())",
	"var n int64\natomic.AddInt64(&n, 3)\nfmt.Println(n)",
}

const goImports = "bufio bytes container/list context crypto/sha256 encoding/csv encoding/hex " +
	"encoding/json errors fmt io math math/big " +
	"regexp sort strconv strings sync sync/atomic time unicode unicode/utf8"

const goUses = "var _ = []any{bufio.NewScanner, bytes.Equal, list.New, context.Background, " +
	"sha256.New, csv.NewReader, hex.Dump, json.Marshal, errors.New, fmt.Println, io.EOF, " +
	"math.Pi, big.NewInt, regexp.Compile, sort.Ints, strconv.Itoa, strings.Index, sync.NewCond, " +
	"atomic.AddInt64, time.Now, unicode.IsUpper, utf8.RuneLen}\n"

// TestGoIsGo compares the output of each program in the interpreter with that of the compiled
// program.
func TestGoIsGo(t *testing.T) {
	var imports, b strings.Builder
	for _, name := range strings.Fields(goImports) {
		fmt.Fprintf(&imports, "import %q\n", name)
	}
	b.WriteString("package main\n" + imports.String() + goUses)
	for i, p := range goPrograms {
		fmt.Fprintf(&b, "func p%d() {\n%s\n}\n", i, p)
	}
	b.WriteString("func main() {\n")
	for i := range goPrograms {
		fmt.Fprintf(&b, "p%d(); fmt.Print(\"\\x00\")\n", i)
	}
	b.WriteString("}\n")
	want := strings.Split(compiled(t, b.String()), "\x00")
	rejections := 0
	for i, p := range goPrograms {
		var out bytes.Buffer
		s := newGoSession(newLink(frames{&out}))
		end := s.run(imports.String()+p, 1)
		s.link.out.flush()
		switch {
		case end.code == wire.CodeRejected:
			rejections++
			t.Logf("rejected %s: %s", end.report.Missing, end.report.Reason)
		case end.code != wire.CodeOK || out.String() != want[i]:
			t.Errorf(
				"%s\n%d %+v\ninterpreted %q\ncompiled    %q", p, end.code, end.exception,
				out.String(), want[i],
			)
		}
	}
	t.Logf("%d of %d programs rejected", rejections, len(goPrograms))
}

func compiled(t *testing.T, source string) string {
	t.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("there is no Go toolchain")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": source,
		"go.mod":  "module programs\n\ngo 1.26\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), tool, "run", ".")
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return string(out)
}

// frames extracts the output from a worker's frames.
type frames struct{ out *bytes.Buffer }

func (f frames) Write(b []byte) (int, error) {
	const head = 5 + 4 // the frame's head, and the request's number
	if b[4] == wire.KindRequest && b[head] == 'o' {
		f.out.Write(b[head+2:])
	}
	if b[4] == wire.KindRequest && b[head] == 'h' {
		f.out.Write(append(bytes.Clone(b[head+1:]), '\n'))
	}
	return len(b), nil
}
