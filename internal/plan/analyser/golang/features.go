package golang

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/golang/features"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// functions holds the names of the standard library that imply a need. A star stands for all names
// without an entry.
var functions = table(`
processes os/exec: Command CommandContext Cmd
processes os: StartProcess FindProcess
processes syscall: Exec ForkExec StartProcess Kill
sockets net: Dial DialTimeout DialTCP DialUDP DialUnix DialIP Dialer
sockets net: Listen ListenTCP ListenUDP ListenPacket ListenUnix ListenConfig
sockets net: LookupHost LookupIP LookupAddr LookupCNAME LookupMX LookupNS LookupTXT LookupPort
sockets net: LookupSRV ResolveTCPAddr ResolveUDPAddr ResolveIPAddr Interfaces InterfaceAddrs
sockets net: DefaultResolver Resolver
sockets net/http: Get Post PostForm Head Client DefaultClient DefaultTransport Transport
sockets net/http: ListenAndServe ListenAndServeTLS Serve Server
sockets net/http/httptest: NewServer NewTLSServer NewUnstartedServer
sockets net/rpc: Dial DialHTTP
sockets net/smtp: SendMail Dial
sockets crypto/tls: Dial DialWithDialer Listen
files os: Open OpenFile OpenRoot Create CreateTemp ReadFile WriteFile ReadDir
files os: Mkdir MkdirAll MkdirTemp Remove RemoveAll Rename Stat Lstat
files os: Chdir Chmod Chown Chtimes Symlink Link Readlink Truncate DirFS CopyFS
files io/ioutil: ReadFile WriteFile ReadDir TempFile TempDir
files path/filepath: Walk WalkDir Glob EvalSymlinks
files archive/zip: OpenReader
files html/template: ParseFiles ParseGlob
files text/template: ParseFiles ParseGlob
files database/sql: Open
native syscall: *
native unsafe: *
native plugin: *
native C: *
native golang.org/x/sys/unix: *
go-reflect reflect: *
go-generics-stdlib slices: *
go-generics-stdlib maps: *
go-generics-stdlib cmp: *
go-generics-stdlib iter: *
go-generics-stdlib unique: *
go-generics-stdlib sync/atomic: Pointer
go-generics-stdlib sync: OnceFunc OnceValue OnceValues
go-generics-stdlib strings: Lines SplitSeq FieldsSeq
`)

func table(text string) map[string]map[string]tiers.Feature {
	t := map[string]map[string]tiers.Feature{}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		head, names, _ := strings.Cut(line, ": ")
		feature, path, _ := strings.Cut(head, " ")
		if t[path] == nil {
			t[path] = map[string]tiers.Feature{}
		}
		for name := range strings.FieldsSeq(names) {
			t[path][name] = tiers.Feature(feature)
		}
	}
	return t
}

// implied holds the packages that a snippet may use without importing them, because an earlier
// snippet imported them.
var implied = map[string]string{
	"os": "os", "exec": "os/exec", "net": "net", "http": "net/http", "filepath": "path/filepath",
	"ioutil": "io/ioutil", "syscall": "syscall", "unsafe": "unsafe", "reflect": "reflect",
	"slices": "slices", "maps": "maps", "cmp": "cmp",
}

// found holds the methods that the standard library finds through an interface.
var found = map[string]bool{
	"String": true, "GoString": true, "Format": true, "Error": true, "Unwrap": true, "Is": true,
	"As": true, "MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true,
	"UnmarshalText": true, "MarshalBinary": true, "UnmarshalBinary": true, "MarshalXML": true,
	"UnmarshalXML": true, "Scan": true, "Value": true,
}

// finder finds features.
type finder struct {
	needs    *router.Needs
	packages map[string]string // name in the snippet -> import path
	declared map[string]bool   // names declared at the snippet's top level
	file     part
	seen     map[router.FeatureNeed]bool

	open      []ast.Node  // the nodes around the current one
	depth     int         // number of function literals among these nodes
	variables map[any]int // loop variables, by *ast.Object, with the depth of their loop
}

func newFinder(needs *router.Needs) *finder {
	return &finder{
		needs:     needs,
		packages:  map[string]string{},
		declared:  map[string]bool{},
		seen:      map[router.FeatureNeed]bool{},
		variables: map[any]int{},
	}
}

func (f *finder) addNeed(feature tiers.Feature, why string, pos token.Pos) {
	key := router.FeatureNeed{Feature: feature, Why: why}
	if !f.seen[key] {
		f.seen[key] = true
		key.Line = f.file.line(pos)
		f.needs.Features = append(f.needs.Features, key)
	}
}

func (f *finder) findImports(file part) {
	f.file = file
	for _, spec := range file.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // checked by the parser
		}

		f.needs.Imports = append(f.needs.Imports,
			router.Import{Module: path, Line: file.line(spec.Pos())})
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		f.packages[name] = path
		if path == "C" || name == "_" && functions[path] != nil {
			f.addNeed(functions[path]["*"], "import "+spec.Path.Value, spec.Pos())
		}
	}
}

func (f *finder) inspect(node ast.Node) bool {
	if node == nil {
		last := len(f.open) - 1
		if _, ok := f.open[last].(*ast.FuncLit); ok {
			f.depth--
		}
		f.open = f.open[:last]
		return true
	}

	f.open = append(f.open, node)
	f.findFeature(node)
	return true
}

func (f *finder) findFeature(node ast.Node) {
	switch n := node.(type) {
	case *ast.FuncLit:
		f.depth++
	case *ast.Ident:
		f.checkCapture(n)
	case *ast.UnaryExpr:
		f.checkAddress(n)
	case *ast.SelectorExpr:
		f.checkSelector(n)
	case *ast.GoStmt:
		f.addNeed(features.Goroutines, "go", n.Pos())
	case *ast.FuncDecl:
		if n.Recv != nil && found[n.Name.Name] {
			f.addNeed(features.Methods, "method "+n.Name.Name, n.Pos())
		}
	case *ast.FuncType:
		if n.TypeParams != nil {
			f.addNeed(features.Generics, "type parameters", n.Pos())
		}
	case *ast.TypeSpec:
		if n.TypeParams != nil {
			f.addNeed(features.Generics, "type parameters", n.Pos())
		}
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && isUniverse(name) && !f.declared[name.Name] {
			switch name.Name {
			case "min", "max", "clear":
				f.addNeed(features.Builtins, name.Name, n.Pos())
			}
		}
	case *ast.ForStmt:
		if init, ok := n.Init.(*ast.AssignStmt); ok && init.Tok == token.DEFINE {
			f.noteVariables(init.Lhs...)
		}
	case *ast.RangeStmt:
		f.checkRange(n)
	}
}

func (f *finder) checkSelector(n *ast.SelectorExpr) {
	name, ok := n.X.(*ast.Ident)
	if !ok || !isUniverse(name) || f.declared[name.Name] {
		return
	}

	path, imported := f.packages[name.Name]
	if !imported {
		path = implied[name.Name]
	}
	names := functions[path]
	feature, ok := names[n.Sel.Name]
	if !ok {
		feature = names["*"]
	}
	if feature != "" {
		f.addNeed(feature, name.Name+"."+n.Sel.Name, n.Pos())
	}
}

func (f *finder) checkRange(n *ast.RangeStmt) {
	over := n.X
	if call, ok := over.(*ast.CallExpr); ok {
		if name, ok := call.Fun.(*ast.Ident); ok && isUniverse(name) &&
			(name.Name == "len" || name.Name == "cap") {
			f.addNeed(features.RangeInt, "range "+name.Name, n.Pos())
		}
	}

	if lit, ok := over.(*ast.BasicLit); ok && lit.Kind == token.INT {
		f.addNeed(features.RangeInt, "range "+lit.Value, n.Pos())
	}
	if n.Tok == token.DEFINE {
		f.noteVariables(n.Key, n.Value)
	}
}

// noteVariables records the variables of a loop.
func (f *finder) noteVariables(variables ...ast.Expr) {
	for _, e := range variables {
		if name, ok := e.(*ast.Ident); ok && name.Obj != nil {
			f.variables[name.Obj] = f.depth
		}
	}
}

// checkCapture finds a loop variable used in a closure. The parser has resolved which variable a
// name refers to.
func (f *finder) checkCapture(name *ast.Ident) {
	if depth, ok := f.variables[name.Obj]; ok && depth < f.depth {
		f.addNeed(features.LoopVariables, name.Name+" in a closure", name.Pos())
	}
}

func (f *finder) checkAddress(n *ast.UnaryExpr) {
	if name, ok := n.X.(*ast.Ident); ok && n.Op == token.AND {
		if _, ok := f.variables[name.Obj]; ok {
			f.addNeed(features.LoopVariables, "&"+name.Name, n.Pos())
		}
	}
}
