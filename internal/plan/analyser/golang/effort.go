package golang

import (
	"go/ast"
	"go/constant"
	"go/token"
	"math"
	"time"
)

// The time of a compiled program for a node of an expression or a statement, and for a call, in
// nanoseconds. The values are lower bounds, because memory and the library take longer.
const (
	nodeCost  = 0.15
	callCost  = 2
	maxEffort = time.Hour        // longer times are treated as this one
	minEffort = time.Millisecond // shorter times are not reported
)

// maxNesting bounds the depth of the nested loops to analyse, because hostile code may nest
// thousands.
const maxNesting = 16

// estimateEffort estimates a snippet's computing time from its constants. It assumes one pass for a
// loop over data, a loop that may be left early, and a recursion. The returned line is that of the
// most expensive statement.
func estimateEffort(files []part) (time.Duration, int) {
	e := effort{
		functions: map[string]*ast.FuncDecl{}, known: map[string]float64{},
		changed: map[any]bool{},
	}
	for _, file := range files {
		e.collectFunctions(file)
		ast.Inspect(file.syntax, e.collectChanges)
	}

	var total, most float64
	line := 0
	for _, file := range files {
		for _, s := range e.entryPoints(file) {
			cost := e.costOf(s)
			if total += cost; cost > most {
				most, line = cost, file.line(s.Pos())
			}
		}
	}

	if total < float64(minEffort) {
		return 0, 0
	}
	return roundEffort(math.Min(total, float64(maxEffort))), line
}

// roundEffort keeps two digits, because more would suggest a precision that does not exist.
func roundEffort(nanoseconds float64) time.Duration {
	scale := math.Pow(10, math.Floor(math.Log10(nanoseconds))-1)
	return time.Duration(math.Floor(nanoseconds/scale) * scale)
}

// effort is the estimate for one snippet.
type effort struct {
	functions map[string]*ast.FuncDecl
	known     map[string]float64 // cost of a call of each function; 0 while it is being determined
	changed   map[any]bool       // variables set more than once, by *ast.Object
	nesting   int                // nesting of loops
}

// collectFunctions collects the functions that a part declares.
func (e *effort) collectFunctions(file part) {
	if file.statements != nil {
		return
	}
	for _, d := range file.syntax.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Body != nil {
			e.functions[f.Name.Name] = f
		}
	}
}

// collectChanges collects the variables that are, or may be, set after their declaration.
func (e *effort) collectChanges(node ast.Node) bool {
	change := func(target ast.Expr) {
		if name, ok := target.(*ast.Ident); ok && name.Obj != nil {
			e.changed[name.Obj] = true
		}
	}
	switch n := node.(type) {
	case *ast.AssignStmt:
		for _, target := range n.Lhs {
			if name, ok := target.(*ast.Ident); ok && name.Obj != nil && name.Obj.Decl == n {
				continue // the name's declaration
			}
			change(target)
		}
	case *ast.IncDecStmt:
		change(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			change(n.X)
		}
	}

	return true
}

// entryPoints returns the statements of a part that run by themselves: those at its top level, or
// those of main.
func (e *effort) entryPoints(file part) []ast.Stmt {
	if file.statements != nil {
		return file.statements.List
	}
	if main := e.functions["main"]; main != nil {
		return main.Body.List
	}
	return nil
}

// costOf returns the time of one pass through a node, in nanoseconds.
func (e *effort) costOf(node ast.Node) float64 {
	total := 0.0
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil:
			return false
		case *ast.FuncLit:
			return false // counted where it is called
		case *ast.ForStmt:
			total += e.costOfLoop(n.Body, e.loopTrips(n))
			return false
		case *ast.RangeStmt:
			total += e.costOf(n.X) + e.costOfLoop(n.Body, e.rangeTrips(n))
			return false
		case *ast.CallExpr:
			total += callCost + e.costOfCall(n)
		}

		total += nodeCost
		return true
	})

	return total
}

// costOfCall returns the time of a call of a snippet's function. It counts the body of a recursive
// function once.
func (e *effort) costOfCall(call *ast.CallExpr) float64 {
	if literal, ok := call.Fun.(*ast.FuncLit); ok {
		return e.costOf(literal.Body)
	}
	name, ok := call.Fun.(*ast.Ident)
	if !ok || e.functions[name.Name] == nil {
		return 0
	}

	if _, known := e.known[name.Name]; !known {
		e.known[name.Name] = 0
		e.known[name.Name] = e.costOf(e.functions[name.Name].Body)
	}
	return e.known[name.Name]
}

// costOfLoop returns the time of all passes through a body. It assumes one pass if the loop may be
// left early.
func (e *effort) costOfLoop(body *ast.BlockStmt, trips float64) float64 {
	if e.nesting == maxNesting {
		return 0
	}
	e.nesting++
	defer func() { e.nesting-- }()

	if trips > 1 && leavesLoop(body) {
		trips = 1
	}
	return trips * (nodeCost + e.costOf(body))
}

// loopTrips returns the number of iterations of a loop of the form `for i := 0; i < N; i++`, or 1
// for any other form.
func (e *effort) loopTrips(loop *ast.ForStmt) float64 {
	init, ok := loop.Init.(*ast.AssignStmt)
	if !ok || len(init.Lhs) != 1 || len(init.Rhs) != 1 {
		return 1
	}

	cond, ok := loop.Cond.(*ast.BinaryExpr)
	name, isName := init.Lhs[0].(*ast.Ident)
	if !ok || !isName || !isNamed(cond.X, name.Name) {
		return 1
	}

	from, known := e.numberOf(init.Rhs[0], 0)
	to, bounded := e.numberOf(cond.Y, 0)
	step := e.loopStep(loop.Post, name.Name)
	if !known || !bounded || step == 0 {
		return 1
	}

	switch cond.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ, token.NEQ:
		return boundTrips((to - from) / step)
	default:
		return 1
	}
}

// boundTrips bounds a number of iterations so that it can be multiplied.
func boundTrips(trips float64) float64 {
	if !(trips > 0) { // negative, or not a number
		return 0
	}
	return math.Min(trips, 1e18)
}

// loopStep returns the amount by which a loop changes its variable, or 0 if unknown.
func (e *effort) loopStep(post ast.Stmt, name string) float64 {
	switch s := post.(type) {
	case *ast.IncDecStmt:
		if !isNamed(s.X, name) {
			return 0
		}
		if s.Tok == token.DEC {
			return -1
		}
		return 1
	case *ast.AssignStmt:
		if len(s.Lhs) != 1 || !isNamed(s.Lhs[0], name) {
			return 0
		}
		step, known := e.numberOf(s.Rhs[0], 0)
		switch {
		case known && s.Tok == token.ADD_ASSIGN:
			return step
		case known && s.Tok == token.SUB_ASSIGN:
			return -step
		}
	}

	return 0
}

// rangeTrips returns the number of iterations of a loop over a constant, or 1 for any other loop.
func (e *effort) rangeTrips(loop *ast.RangeStmt) float64 {
	if n, ok := e.numberOf(loop.X, 0); ok {
		return boundTrips(n)
	}
	return 1
}

func isNamed(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}

const (
	maxConstants = 8  // length of a chain of constants
	maxDigits    = 32 // digits of a literal
)

// numberOf evaluates an expression if it consists only of literals, constants, variables that the
// snippet sets once, and arithmetic.
func (e *effort) numberOf(expr ast.Expr, depth int) (float64, bool) {
	if depth > maxConstants {
		return 0, false
	}

	switch x := expr.(type) {
	case *ast.BasicLit:
		if len(x.Value) > maxDigits {
			return 0, false
		}
		value := constant.ToFloat(constant.MakeFromLiteral(x.Value, x.Kind, 0))
		if value.Kind() != constant.Float {
			return 0, false
		}

		number, _ := constant.Float64Val(value)
		return number, !math.IsInf(number, 0)
	case *ast.ParenExpr:
		return e.numberOf(x.X, depth+1)
	case *ast.Ident:
		if value := e.valueOf(x); value != nil {
			return e.numberOf(value, depth+1)
		}
	case *ast.CallExpr: // a conversion: int(1e6)
		if name, ok := x.Fun.(*ast.Ident); ok && conversions[name.Name] && len(x.Args) == 1 {
			return e.numberOf(x.Args[0], depth+1)
		}
	case *ast.BinaryExpr:
		left, known := e.numberOf(x.X, depth+1)
		right, alsoKnown := e.numberOf(x.Y, depth+1)
		return calculate(left, x.Op, right, known && alsoKnown)
	}

	return 0, false
}

var conversions = map[string]bool{
	"int": true, "int32": true, "int64": true, "uint": true, "uint32": true, "uint64": true,
}

func calculate(x float64, op token.Token, y float64, known bool) (float64, bool) {
	if !known {
		return 0, false
	}

	switch op {
	case token.ADD:
		return x + y, true
	case token.SUB:
		return x - y, true
	case token.MUL:
		return x * y, true
	case token.QUO:
		return math.Trunc(x / y), y != 0
	case token.SHL:
		return math.Ldexp(x, int(math.Min(y, 64))), y >= 0
	default:
		return 0, false
	}
}

// valueOf returns the expression behind a constant, or behind a variable that the snippet sets
// once; it returns nil if the parser has not resolved the name.
func (e *effort) valueOf(name *ast.Ident) ast.Expr {
	if name.Obj == nil || e.changed[name.Obj] {
		return nil
	}

	switch d := name.Obj.Decl.(type) {
	case *ast.ValueSpec:
		for i, declared := range d.Names {
			if declared.Name == name.Name && len(d.Values) == len(d.Names) {
				return d.Values[i]
			}
		}
	case *ast.AssignStmt:
		for i, target := range d.Lhs {
			if isNamed(target, name.Name) && len(d.Rhs) == len(d.Lhs) {
				return d.Rhs[i]
			}
		}
	}

	return nil
}

// leavesLoop reports whether a statement of a loop may leave the loop. A break in a nested
// statement leaves only that statement.
func leavesLoop(body *ast.BlockStmt) bool {
	leaves := false
	var breaksOut func(ast.Node, bool)
	breaksOut = func(node ast.Node, own bool) {
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.ReturnStmt:
				leaves = true
			case *ast.BranchStmt:
				leaves = leaves || n.Tok == token.GOTO || n.Label != nil ||
					n.Tok == token.BREAK && own
			case *ast.ForStmt,
				*ast.RangeStmt,
				*ast.SwitchStmt,
				*ast.TypeSwitchStmt,
				*ast.SelectStmt:
				if n != node {
					breaksOut(n, false)
					return false
				}
			}
			return !leaves
		})
	}
	breaksOut(body, true)

	return leaves
}
