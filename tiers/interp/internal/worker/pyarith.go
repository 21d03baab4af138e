package worker

import (
	"math/big"

	"github.com/go-python/gpython/ast"
	"github.com/go-python/gpython/py"
)

// ownOperators maps the integer operators that gpython computes incorrectly near the bounds of 64
// bits to the functions that replace them.
var ownOperators = map[ast.OperatorNumber]string{
	ast.Sub: "__sub", ast.Mult: "__mul", ast.FloorDiv: "__div", ast.Modulo: "__mod",
}

// far bounds operands whose product fits in 64 bits.
const far = 1 << 31

// arithmetic returns one of those functions. It leaves other values to gpython, such as a string
// or a list times a number.
func arithmetic(
	near func(a, b int64) int64, whole func(z, a, b *big.Int),
	other func(a, b py.Object) (py.Object, error), divides bool,
) pyFunction {
	return func(_ py.Object, args py.Tuple) (py.Object, error) {
		a, aSmall := args[0].(py.Int)
		b, bSmall := args[1].(py.Int)
		if divides && bSmall && b == 0 {
			return nil, py.ExceptionNewf(py.ZeroDivisionError, "division by zero")
		}
		if aSmall && bSmall && a < far && a > -far && b < far && b > -far {
			return py.Int(near(int64(a), int64(b))), nil
		}

		x, y := bigOf(args[0]), bigOf(args[1])
		if x == nil || y == nil {
			return other(args[0], args[1])
		}
		z := new(big.Int)
		whole(z, x, y)

		return (*py.BigInt)(z).MaybeInt(), nil
	}
}

// pyFunction is a builtin that replaces one of gpython's.
type pyFunction = func(py.Object, py.Tuple) (py.Object, error)

func bigOf(value py.Object) *big.Int {
	switch v := value.(type) {
	case py.Int:
		return big.NewInt(int64(v))
	case *py.BigInt:
		return (*big.Int)(v)
	}
	return nil
}

// floorDiv and floorMod round down, as in Python. Go rounds toward zero.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - b*floorDiv(a, b) }

func bigFloorDiv(z, a, b *big.Int) {
	var rest big.Int
	z.QuoRem(a, b, &rest)
	if rest.Sign() != 0 && (rest.Sign() < 0) != (b.Sign() < 0) {
		z.Sub(z, big.NewInt(1))
	}
}

func bigFloorMod(z, a, b *big.Int) {
	z.Rem(a, b)
	if z.Sign() != 0 && (z.Sign() < 0) != (b.Sign() < 0) {
		z.Add(z, b)
	}
}

var (
	pySub = arithmetic(
		func(a, b int64) int64 { return a - b }, func(z, a, b *big.Int) { z.Sub(a, b) }, py.Sub,
		false,
	)
	pyMul = arithmetic(
		func(a, b int64) int64 { return a * b }, func(z, a, b *big.Int) { z.Mul(a, b) }, py.Mul,
		false,
	)
	pyDiv = arithmetic(floorDiv, bigFloorDiv, py.FloorDiv, true)
	pyMod = arithmetic(floorMod, bigFloorMod, py.Mod, true)
)
