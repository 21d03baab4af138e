package tablesql

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// replaceSums replaces the sums of SQLite, which count each text as the number at its beginning, or
// as 0: the sum of 1.234,50 and n/a would be 1.234. The replacements refuse such text. They ignore
// an empty string, like NULL, because it represents a missing value in CSV.
func replaceSums(db *sqlite3.Conn) error {
	const flags = sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	for name, result := range map[string]func(*sum, sqlite3.Context){
		"sum": (*sum).giveSum, "total": (*sum).giveTotal, "avg": (*sum).giveAverage,
	} {
		begin := func() sqlite3.AggregateFunction { return &sum{name: name, result: result} }
		if err := db.CreateWindowFunction(name, 1, flags, begin); err != nil {
			return err
		}
	}
	return nil
}

// sum adds numbers as SQLite does: integers exactly, others with a compensation for the error of
// each addition (Kahan-Babuška-Neumaier).
type sum struct {
	name   string
	result func(*sum, sqlite3.Context)

	count     int64
	whole     int64 // the sum while isReal is false
	isReal    bool
	overflows bool // the sum of integers alone is too large
	real, err float64
	big       *big.Int // the sum of integers of more than 64 bits; nil if there are none
	refused   error    // the first text that is not a number
}

func (s *sum) Step(ctx sqlite3.Context, args ...sqlite3.Value) {
	kind := s.kindOf(ctx, args[0])
	if kind == sqlite3.NULL {
		return
	}

	s.count++
	if kind == sqlite3.TEXT {
		s.addBig(args[0].RawText(), 1)
		return
	}
	if kind == sqlite3.INTEGER {
		n := args[0].Int64()
		if total := s.whole + n; !s.isReal && (total > s.whole) == (n > 0) {
			s.whole = total
			return
		}
		s.overflows = s.overflows || !s.isReal
		s.becomeReal()
		s.addInteger(n)
		return
	}

	s.becomeReal()
	s.overflows = false
	s.add(args[0].Float())
}

// Inverse removes the oldest value of a window.
func (s *sum) Inverse(ctx sqlite3.Context, args ...sqlite3.Value) {
	kind := s.kindOf(ctx, args[0])
	if kind == sqlite3.NULL {
		return
	}

	s.count--
	switch {
	case kind == sqlite3.TEXT:
		s.addBig(args[0].RawText(), -1)
	case kind != sqlite3.INTEGER:
		s.add(-args[0].Float())
	case !s.isReal:
		s.whole -= args[0].Int64()
	case args[0].Int64() == math.MinInt64: // has no negative
		s.addInteger(math.MaxInt64)
		s.add(1)
	default:
		s.addInteger(-args[0].Int64())
	}
}

// addBig adds an integer of more than 64 bits, or removes it.
func (s *sum) addBig(text []byte, sign int64) {
	n, isNumber := new(big.Int).SetString(strings.Trim(string(text), " "), 10)
	if !isNumber {
		return // not possible, see kindOf
	}
	if s.big == nil {
		s.big = new(big.Int)
	}
	s.big.Add(s.big, n.Mul(n, big.NewInt(sign)))
}

// kindOf returns the kind of a value: INTEGER, FLOAT, TEXT for an integer of more than 64 bits, or
// NULL for one that is not added.
func (s *sum) kindOf(ctx sqlite3.Context, value sqlite3.Value) sqlite3.Datatype {
	kind := value.Type()
	if kind == sqlite3.INTEGER || kind == sqlite3.FLOAT || kind == sqlite3.NULL {
		return kind
	}
	if kind == sqlite3.TEXT {
		if len(value.RawText()) == 0 {
			return sqlite3.NULL
		}
		if kindOf(value.RawText()) == kindBig {
			return sqlite3.TEXT
		}
		if kind = value.NumericType(); kind != sqlite3.TEXT {
			return kind
		}
	}

	if s.refused == nil {
		s.refused = s.explain(value)
		ctx.ResultError(s.refused)
	}
	return sqlite3.NULL
}

// explain returns the error for a value that is not a number.
func (s *sum) explain(value sqlite3.Value) error {
	if value.Type() == sqlite3.BLOB {
		return errors.New(s.name + " of bytes: they are not a number, cast them first")
	}

	text := value.RawText()
	const most = 60
	shown := strings.ToValidUTF8(string(text[:min(len(text), most)]), "")
	advice := fmt.Sprintf("turn it into a number with replace and cast, into NULL with nullif(..., %s), or filter "+
		"it with WHERE", sqlite3.Quote(shown))
	if len(text) > most {
		shown, advice = shown+"...", "filter such texts with WHERE"
	}
	return fmt.Errorf("%s of the text %q: it is not a number; %s", s.name, shown, advice)
}

func (s *sum) becomeReal() {
	if s.isReal {
		return
	}
	s.isReal, s.real, s.err = true, 0, 0
	s.addInteger(s.whole)
}

// addInteger adds an integer without loss, even if it has more digits than a float.
func (s *sum) addInteger(n int64) {
	const exact, part = 1 << 52, 1 << 14
	if -exact < n && n < exact {
		s.add(float64(n))
		return
	}
	s.add(float64(n - n%part))
	s.add(float64(n % part))
}

func (s *sum) add(value float64) {
	before := s.real
	total := before + value

	if math.Abs(before) > math.Abs(value) {
		s.err += (before - total) + value
	} else {
		s.err += (value - total) + before
	}
	s.real = total
}

func (s *sum) float() float64 {
	if s.big != nil && s.big.Sign() != 0 {
		f, _ := new(big.Float).SetInt(s.big).Float64()
		return f + s.smallFloat()
	}
	return s.smallFloat()
}

// smallFloat returns the sum without the integers of more than 64 bits.
func (s *sum) smallFloat() float64 {
	if !s.isReal {
		return float64(s.whole)
	}
	if math.IsNaN(s.err) || math.IsInf(s.err, 0) {
		return s.real
	}
	return s.real + s.err
}

// Value returns the result, or an error.
func (s *sum) Value(ctx sqlite3.Context) {
	if s.refused != nil {
		ctx.ResultError(s.refused)
		return
	}
	s.result(s, ctx)
}

func (s *sum) giveSum(ctx sqlite3.Context) {
	switch {
	case s.count == 0:
		ctx.ResultNull()
	case s.big != nil && !s.isReal:
		if total := new(big.Int).Add(s.big, big.NewInt(s.whole)); total.IsInt64() {
			ctx.ResultInt64(total.Int64())
		} else {
			ctx.ResultText(total.String())
		}
	case s.overflows:
		ctx.ResultError(errors.New("integer overflow"))
	case s.isReal:
		ctx.ResultFloat(s.float())
	default:
		ctx.ResultInt64(s.whole)
	}
}

func (s *sum) giveTotal(ctx sqlite3.Context) { ctx.ResultFloat(s.float()) }

func (s *sum) giveAverage(ctx sqlite3.Context) {
	if s.count == 0 {
		ctx.ResultNull()
		return
	}
	ctx.ResultFloat(s.float() / float64(s.count))
}
