package worker

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"reflect"
	"strings"
)

// The interpreter computes constants without bounds, and lets typed constants wrap around. Like the
// compiler, the standard type checker rejects such constants. It lacks most names of a session, so
// all of its errors except those about constants are ignored.

// mayOverflow reports whether a node could produce a constant that Go's compiler rejects and the
// interpreter accepts. Most snippets have no such node, which saves the cost of the check.
func (c *goCheck) mayOverflow(n ast.Node) bool {
	const digits = 18 // fit 64 bits
	switch n := n.(type) {
	case *ast.BasicLit:
		isNumber := n.Kind == token.INT || n.Kind == token.FLOAT || n.Kind == token.IMAG
		return isNumber && (len(n.Value) > digits || n.Kind != token.INT && strings.ContainsAny(n.Value, "eEpP"))
	case *ast.BinaryExpr:
		return n.Op == token.SHL || isConversion(n.X) || isConversion(n.Y) || c.isOfPackage(n.X) ||
			c.isOfPackage(n.Y)
	case *ast.GenDecl:
		return n.Tok == token.CONST
	case *ast.ArrayType:
		length, isLiteral := n.Len.(*ast.BasicLit)
		return n.Len != nil && (!isLiteral || len(length.Value) > digits/2)
	case *ast.Ident:
		_, isConstant := c.known.constants[n.Name].(*types.Const)
		return isConstant
	}
	return false
}

// isConversion reports whether an expression converts a value to a built-in type.
func isConversion(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	if !ok {
		return false
	}
	_, isType := types.Universe.Lookup(name.Name).(*types.TypeName)
	return isType
}

// isOfPackage reports whether an expression is a name from an imported package.
func (c *goCheck) isOfPackage(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name, ok := s.X.(*ast.Ident)
	return ok && (c.own.packages[name.Name] != "" || c.known.packages[name.Name] != "")
}

// checkConstants returns the compiler's error about a constant of the snippet, or "", and
// records the constants for later snippets.
func (c *goCheck) checkConstants() (mistake string) {
	pkg := types.NewPackage("main", "main")
	declared := c.declaredNames()
	if c.weighs {
		c.addKnown(pkg, declared)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{
		Importer: constantsOf{c.known}, DisableUnusedImportCheck: true,
		Error: func(err error) {
			e, ok := err.(types.Error) //nolint:errorlint // as it is documented
			if ok && mistake == "" && isAboutConstants(e.Msg) {
				mistake = c.src.at(c.src.offset(e.Pos), e.Msg).Error()
			}
		},
	}
	if c.weighs {
		checker := types.NewChecker(&config, c.src.set, pkg, info)
		_ = checker.Files([]*ast.File{c.file()}) // config.Error collects the errors
	}
	if mistake == "" {
		mistake = c.findHugeArray(info)
	}

	for name := range declared {
		c.own.constants[name] = types.NewVar(token.NoPos, pkg, name, types.Typ[types.Invalid])
		if object, ok := pkg.Scope().Lookup(name).(*types.Const); ok && object.Val().Kind() != constant.Unknown {
			c.own.constants[name] = object
		}
	}
	return mistake
}

// addKnown adds the names of earlier snippets to a package, except those that this one declares.
func (c *goCheck) addKnown(pkg *types.Package, declared map[string]bool) {
	for name, object := range c.known.constants {
		if !declared[name] {
			pkg.Scope().Insert(object)
		}
	}
	for name, path := range c.known.packages {
		if !declared[name] && c.own.packages[name] == "" {
			imported, _ := constantsOf{c.known}.Import(path) // cannot fail
			pkg.Scope().Insert(types.NewPkgName(token.NoPos, pkg, name, imported))
		}
	}
}

// isAboutConstants reports whether an error of the type checker concerns the value of a
// constant.
func isAboutConstants(message string) bool {
	if !strings.Contains(message, "constant") {
		return false
	}
	for _, kind := range []string{
		"overflow", "truncated", "invalid shift count", "malformed", "excessively long",
		"invalid array length", "cannot convert",
	} {
		if strings.Contains(message, kind) {
			return true
		}
	}
	return false
}

// maxArray is the maximum size of a type, in bytes, as in the compiler.
const maxArray = 1 << 50

func (c *goCheck) findHugeArray(info *types.Info) string {
	sizes := types.SizesFor("gc", "amd64")
	first, mistake := token.Pos(math.MaxInt), ""
	for e, t := range info.Types {
		array, ok := t.Type.(*types.Array)
		if !ok || !t.IsType() || array.Elem() == types.Typ[types.Invalid] || e.Pos() >= first {
			continue
		}
		if size := sizes.Sizeof(array); size < 0 || size >= maxArray {
			first = e.Pos()
			mistake = fmt.Sprintf("type %s larger than address space", array)
			mistake = c.src.at(c.src.offset(first), mistake).Error()
		}
	}
	return mistake
}

// file returns the snippet as a file of package main: the statements are in a function, except
// for declarations, which functions also use.
func (c *goCheck) file() *ast.File {
	body := &ast.BlockStmt{}
	file := &ast.File{Name: ast.NewIdent("main"), Decls: append([]ast.Decl(nil), c.src.decls...)}
	for _, s := range c.src.stmts {
		if d, ok := s.(*ast.DeclStmt); ok {
			file.Decls = append(file.Decls, d.Decl)
		} else {
			body.List = append(body.List, s)
		}
	}

	file.Decls = append(file.Decls, &ast.FuncDecl{
		Name: ast.NewIdent("_"), Type: &ast.FuncType{Params: &ast.FieldList{}}, Body: body,
	})
	return file
}

// declaredNames returns the top-level names of the snippet.
func (c *goCheck) declaredNames() map[string]bool {
	names := map[string]bool{}
	for name := range c.variables() {
		names[name] = true
	}
	for name := range c.own.results {
		names[name] = true
	}
	for _, s := range c.src.stmts {
		d, ok := s.(*ast.DeclStmt)
		if !ok {
			continue
		}
		for _, spec := range d.Decl.(*ast.GenDecl).Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names[spec.Name.Name] = true
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					names[n.Name] = true
				}
			}
		}
	}

	delete(names, "_")
	return names
}

// constantsOf is an importer that imports only the constants of packages.
type constantsOf struct{ names *goNames }

// Import returns a package with only constants.
func (i constantsOf) Import(path string) (*types.Package, error) {
	name := i.names.allowed[path]
	pkg := types.NewPackage(path, name)
	for symbol, value := range i.names.symbols[path+"/"+name] {
		if c := constantFrom(pkg, symbol, value); c != nil {
			pkg.Scope().Insert(c)
		}
	}
	pkg.MarkComplete()
	return pkg, nil
}

// untyped maps kinds of constants to their untyped types.
var untyped = map[constant.Kind]types.BasicKind{
	constant.Bool: types.UntypedBool, constant.String: types.UntypedString, constant.Int: types.UntypedInt,
	constant.Float: types.UntypedFloat, constant.Complex: types.UntypedComplex,
}

// constantFrom returns a symbol as a constant, or nil if it is not a constant.
func constantFrom(pkg *types.Package, name string, value reflect.Value) *types.Const {
	if !value.IsValid() || value.CanSet() {
		return nil
	}
	if v, ok := value.Interface().(constant.Value); ok {
		return types.NewConst(token.NoPos, pkg, name, types.Typ[untyped[v.Kind()]], v)
	}
	if !value.CanInt() {
		return nil
	}
	basic := types.Universe.Lookup(value.Kind().String()).Type()
	named := types.NewNamed(types.NewTypeName(token.NoPos, pkg, value.Type().Name(), nil), basic, nil)
	return types.NewConst(token.NoPos, pkg, name, named, constant.MakeInt64(value.Int()))
}

// maxText bounds the strings that a snippet's constants produce, in bytes; a few lines could
// produce a string of any length.
const maxText = 16 << 20

// longTexts measures constant strings before they are concatenated.
type longTexts struct {
	known    map[string]types.Object
	declared map[string][]ast.Expr
	lengths  map[string]int // -1 while it is measured
}

// findLongText rejects a snippet with a long constant string.
func (c *goCheck) findLongText() {
	t := longTexts{c.known.constants, map[string][]ast.Expr{}, map[string]int{}}
	var declared []*ast.Ident
	for _, n := range c.nodes() {
		ast.Inspect(n, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				declared = append(declared, t.declare(d)...)
			}
			return true
		})
	}

	for _, name := range declared {
		if t.lengthOf(name.Name) > maxText {
			reason := fmt.Sprintf("the constant %s is a string of more than %d MiB", name.Name, maxText>>20)
			c.found("constant", reason, name.Pos())
		}
	}
}

// declare records the values of constants. A constant without a value repeats the previous value.
func (t longTexts) declare(d *ast.GenDecl) (names []*ast.Ident) {
	var values []ast.Expr
	for _, spec := range d.Specs {
		s, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if len(s.Values) > 0 {
			values = s.Values
		}
		for i, name := range s.Names {
			if i < len(values) {
				t.declared[name.Name] = append(t.declared[name.Name], values[i])
				names = append(names, name)
			}
		}
	}
	return names
}

// lengthOf returns the length of the longest constant with a name; for literals the result is
// slightly too high.
func (t longTexts) lengthOf(name string) int {
	if n, isKnown := t.lengths[name]; isKnown {
		return max(n, 0)
	}
	t.lengths[name] = -1
	longest := 0
	for _, e := range t.declared[name] {
		longest = max(longest, t.measure(e))
	}
	if k, ok := t.known[name].(*types.Const); ok && k.Val().Kind() == constant.String && t.declared[name] == nil {
		longest = len(constant.StringVal(k.Val()))
	}

	t.lengths[name] = longest
	return longest
}

// measure returns the length of the string that an expression builds from constants.
func (t longTexts) measure(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return len(e.Value)
		}
	case *ast.Ident:
		return t.lengthOf(e.Name)
	case *ast.ParenExpr:
		return t.measure(e.X)
	case *ast.CallExpr:
		if len(e.Args) == 1 {
			return t.measure(e.Args[0])
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return min(t.measure(e.X)+t.measure(e.Y), math.MaxInt/4)
		}
	}
	return 0
}
