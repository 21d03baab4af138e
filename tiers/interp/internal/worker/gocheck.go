package worker

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/tiers/interp/internal/gosymbols"
)

// goNames holds the top-level names of a session that the checks need.
type goNames struct {
	host     map[string]bool   // the host's functions and inputs
	packages map[string]string // import paths, by their local names
	types    map[string]bool
	methods  map[string]bool // with a pointer receiver
	results  map[string]int  // number of a function's results, plus one
	from     map[string]int  // the snippet that declared a function
	wrapped  int             // number of functions generated for statements
	// constants holds the top-level constants with their values, and other names without a value.
	constants map[string]types.Object
	symbols   map[string]map[string]reflect.Value
	allowed   map[string]string
}

func newGoNames() *goNames {
	names := emptyGoNames()
	names.symbols, names.allowed = gosymbols.Exports(), gosymbols.Packages()
	return names
}

func emptyGoNames() *goNames {
	return &goNames{
		host: map[string]bool{}, packages: map[string]string{}, types: map[string]bool{},
		methods: map[string]bool{}, results: map[string]int{}, from: map[string]int{},
		constants: map[string]types.Object{},
	}
}

// goCheck finds code that the interpreter cannot run or runs incorrectly.
type goCheck struct {
	src    *goSource
	known  *goNames // names of earlier snippets
	own    *goNames // names of this snippet
	local  map[string]bool
	impure string
	weighs bool // the snippet may have constants that the compiler rejects

	started map[*ast.FuncLit]bool // by a go statement with a separate frame

	missing, reason string
}

// found records the first reason for a rejection.
func (c *goCheck) found(missing, reason string, at token.Pos) {
	if c.reason == "" {
		c.missing = missing
		c.reason = "line " + strconv.Itoa(c.src.line(at)) + ": " + reason
	}
}

func (c *goCheck) run() (missing, reason string) {
	c.local, c.started = map[string]bool{}, map[*ast.FuncLit]bool{}
	for _, d := range c.src.decls {
		c.declare(d)
	}
	for _, s := range c.src.stmts {
		c.topLevel(s)
	}

	for _, n := range c.nodes() {
		ast.Inspect(n, c.bind)
	}
	for _, n := range c.nodes() {
		ast.Inspect(n, c.node)
		c.loops(n, false)
	}
	if c.weighs {
		c.findLongText()
	}

	return c.missing, c.reason
}

// nodes returns the parts of the snippet.
func (c *goCheck) nodes() (all []ast.Node) {
	for _, d := range c.src.decls {
		all = append(all, d)
	}
	for _, s := range c.src.stmts {
		all = append(all, s)
	}
	return all
}

// declare notes the names of an import or a function.
func (c *goCheck) declare(d ast.Decl) {
	switch d := d.(type) {
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if i, ok := spec.(*ast.ImportSpec); ok {
				c.imported(i)
			}
		}
	case *ast.FuncDecl:
		c.function(d)
	}
}

func (c *goCheck) imported(i *ast.ImportSpec) {
	path, err := strconv.Unquote(i.Path.Value)
	name, ok := c.known.allowed[path]
	switch {
	case err != nil || !ok:
		c.found(path, "it has no package "+i.Path.Value, i.Pos())
	case i.Name != nil && (i.Name.Name == "." || i.Name.Name == "_"):
		c.found("import "+i.Name.Name, "it imports packages by their names only", i.Pos())
	case i.Name != nil:
		name = i.Name.Name
	}

	c.own.packages[name] = path
}

// silent are methods that the standard library calls through an interface. It does not find them on
// interpreted types.
var silent = set(
	"Error", "Format", "GoString", "String", "Is", "As", "Unwrap", "MarshalJSON", "UnmarshalJSON",
	"MarshalText", "UnmarshalText", "MarshalBinary", "UnmarshalBinary", "Scan", "WriteTo",
	"ReadFrom",
)

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func (c *goCheck) function(d *ast.FuncDecl) {
	name := d.Name.Name
	switch {
	case d.Recv != nil:
		if silent[name] {
			c.found(
				"method "+name,
				"the standard library does not see a method "+name+" of an interpreted type",
				d.Pos(),
			)
		}
		if len(d.Recv.List) == 1 {
			if _, ok := d.Recv.List[0].Type.(*ast.StarExpr); ok {
				c.own.methods[name] = true
			}
		}
		return
	case name == "init":
		c.found("func init", "it does not run init functions", d.Pos())
	case name == mainRenamed:
		c.found("name", "the name "+mainRenamed+" is reserved", d.Pos())
	case c.known.results[name] > 0 || c.own.results[name] > 0:
		c.found("redefinition", "the function "+name+" already exists", d.Pos())
	}

	c.topName(d.Name)
	c.own.results[name] = 1 + d.Type.Results.NumFields()
}

// topName checks a name declared at the snippet's top level.
func (c *goCheck) topName(n *ast.Ident) {
	if c.known.host[n.Name] {
		c.found("name", "the name "+n.Name+" belongs to the host", n.Pos())
	}
	if c.known.results[n.Name] > 0 || c.known.types[n.Name] {
		c.found("redefinition", n.Name+" already exists as a function or a type", n.Pos())
	}
}

// topLevel checks the names of a top-level statement, and whether it is allowed there.
func (c *goCheck) topLevel(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ReturnStmt, *ast.DeferStmt, *ast.BranchStmt:
		c.found(
			"top-level statement", "return, defer and branches are allowed only in a function",
			s.Pos(),
		)
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			for _, l := range s.Lhs {
				if n, ok := l.(*ast.Ident); ok {
					c.topName(n)
				}
			}
		}
	case *ast.DeclStmt:
		for _, spec := range s.Decl.(*ast.GenDecl).Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				c.topName(spec.Name)
				if c.own.types[spec.Name.Name] {
					c.found("redefinition", "the type "+spec.Name.Name+" already exists", spec.Pos())
				}
				c.own.types[spec.Name.Name] = true
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					c.topName(n)
				}
			}
		}
	}
}

// bind notes every name that the snippet declares, at any depth.
func (c *goCheck) bind(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			for _, l := range n.Lhs {
				c.bindIdent(l)
			}
		}
	case *ast.RangeStmt:
		c.bindIdent(n.Key)
		c.bindIdent(n.Value)
	case *ast.ValueSpec:
		for _, name := range n.Names {
			c.bindIdent(name)
		}
	case *ast.TypeSpec:
		c.bindIdent(n.Name)
	case *ast.FuncDecl:
		if n.Recv == nil {
			c.bindIdent(n.Name)
		}
	case *ast.Field:
		for _, name := range n.Names {
			c.bindIdent(name)
		}
	}

	return true
}

func (c *goCheck) bindIdent(e ast.Expr) {
	n, ok := e.(*ast.Ident)
	if !ok {
		return
	}
	if strings.HasPrefix(n.Name, wrapper) {
		c.found("name", "names that begin with "+wrapper+" are reserved", n.Pos())
	}

	c.local[n.Name] = true
}

// node checks a single node of the syntax tree.
func (c *goCheck) node(n ast.Node) bool {
	c.weighs = c.weighs || c.mayOverflow(n)
	switch n := n.(type) {
	case *ast.FuncType:
		if n.TypeParams.NumFields() > 0 {
			c.found("generics", "it does not run generic functions", n.Pos())
		}
	case *ast.TypeSpec:
		if n.TypeParams.NumFields() > 0 {
			c.found("generics", "it does not run generic types", n.Pos())
		}
	case *ast.BranchStmt:
		if n.Tok == token.GOTO {
			c.found("goto", "it does not run goto", n.Pos())
		}
	case *ast.RangeStmt:
		if l, ok := n.X.(*ast.BasicLit); ok && l.Kind == token.INT {
			c.found("range over int", "it does not range over integers", n.Pos())
		}
	case *ast.BasicLit:
		if n.Kind == token.STRING &&
			(strings.Contains(n.Value, "%T") || strings.Contains(n.Value, "%#")) {
			c.found("%T", "it does not know the names of interpreted types", n.Pos())
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.Ident); ok && !c.bound(f.Name) &&
			(f.Name == "min" || f.Name == "max" || f.Name == "clear") {
			c.found("builtin "+f.Name, "it has no builtin "+f.Name, n.Pos())
		}
	case *ast.SelectorExpr:
		c.selector(n)
	case *ast.FuncDecl:
		if n.Name.Name == "main" && n.Recv == nil {
			c.edit(n.Name, mainRenamed)
		}
	}

	if call, ok := n.(*ast.CallExpr); ok {
		if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "main" {
			c.edit(f, mainRenamed)
		}
	}
	return true
}

// mainRenamed replaces the name main: the interpreter would run a function with that name after
// each snippet.
const mainRenamed = "maiN"

func (c *goCheck) edit(n *ast.Ident, text string) {
	c.src.edits = append(c.src.edits, goEdit{c.src.offset(n.Pos()), len(n.Name), text})
}

// bound reports whether the snippet or the session declares a name.
func (c *goCheck) bound(name string) bool {
	return c.local[name] || c.known.results[name] > 0
}

// clocks are functions whose results differ between runs.
var clocks = set(
	"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.Tick",
	"time.NewTimer", "time.NewTicker", "context.WithTimeout", "context.WithDeadline",
)

// selector checks pkg.Name.
func (c *goCheck) selector(n *ast.SelectorExpr) {
	x, ok := n.X.(*ast.Ident)
	if !ok || c.local[x.Name] {
		return
	}
	path, ok := c.own.packages[x.Name]
	if !ok {
		path, ok = c.known.packages[x.Name]
	}
	if !ok {
		return
	}

	if _, ok := c.known.symbols[path+"/"+c.known.allowed[path]][n.Sel.Name]; !ok ||
		strings.HasPrefix(n.Sel.Name, "_") {
		c.found(path+"."+n.Sel.Name, "it has no "+path+"."+n.Sel.Name, n.Pos())
	}
	if path == "math/rand" || clocks[path+"."+n.Sel.Name] {
		c.impure = "the snippet uses " + path + "." + n.Sel.Name
	}
}
