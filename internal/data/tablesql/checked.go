package tablesql

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// addChecks adds calls of these functions to a query.
const (
	quotientFunction  = "rlm_quotient"
	remainderFunction = "rlm_remainder"
	castFunction      = "rlm_cast"
	tryCastFunction   = "rlm_try_cast" // see replaceTryCast
)

// These constants identify the type to which a CAST converts. Any other number is the number of
// decimal places of DECIMAL.
const (
	castInteger = -1
	castReal    = -2
	castNumeric = -3
	castOther   = -4 // text or bytes
)

// addFunctions adds the functions that report what SQLite does silently.
func (q *question) addFunctions(db *sqlite3.Conn) error {
	const flags = sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	type function struct {
		name      string
		arguments int
		function  sqlite3.ScalarFunction
	}
	var list []function
	if q.hasWord("/", "%", "cast") {
		list = append(list, function{quotientFunction, 2, q.divide}, function{remainderFunction, 2, q.takeRemainder},
			function{castFunction, 2, q.castValue})
	}
	if q.hasWord("try_cast") {
		list = append(list, function{tryCastFunction, 2, q.tryCastValue})
	}
	if q.hasWord("like") {
		list = append(list, function{"like", 2, q.matchLike}, function{"like", 3, q.matchLike})
	}
	if q.hasWord("ilike") { // SQLite lacks it
		list = append(list, function{"regexp", 2, withIlike}, function{"regexp", 3, withIlike})
	}

	for _, f := range list {
		if err := db.CreateFunction(f.name, f.arguments, flags, f.function); err != nil {
			return err
		}
	}
	return nil
}

// tell adds a note, once for each subject.
func (q *question) tell(about, format string, args ...any) {
	if q.told[about] {
		return
	}
	if q.told == nil {
		q.told = map[string]bool{}
	}
	q.told[about] = true
	q.notes = append(q.notes, toldNote{about, fmt.Sprintf(format, args...)})
}

// toldNote is a note about a subject, which a session receives only once.
type toldNote struct{ about, text string }

// number is an operand of a division.
type number struct {
	whole  int64
	real   float64
	isReal bool
}

func (n number) float() float64 {
	if n.isReal {
		return n.real
	}
	return float64(n.whole)
}

// String formats a number for a note.
func (n number) String() string {
	if n.isReal {
		return strconv.FormatFloat(n.real, 'g', 6, 64)
	}
	return strconv.FormatInt(n.whole, 10)
}

// numbersOf returns the operands of a division as SQLite reads them. It fails for text that is not
// a number; empty text is a missing value, as in sums.
func numbersOf(ctx sqlite3.Context, args []sqlite3.Value) (both [2]number, areNumbers bool) {
	for i, arg := range args[:2] {
		kind := arg.Type()
		if kind == sqlite3.TEXT || kind == sqlite3.BLOB {
			if text := bytes.TrimSpace(arg.RawText()); len(text) == 0 {
				return both, false
			}
			if kind = arg.NumericType(); kind == sqlite3.TEXT || kind == sqlite3.BLOB {
				ctx.ResultError(notNumber("a quotient", arg.RawText()))
				return both, false
			}
		}
		switch kind {
		case sqlite3.INTEGER:
			both[i].whole = arg.Int64()
		case sqlite3.FLOAT:
			both[i].real, both[i].isReal = arg.Float(), true
		default: // NULL
			return both, false
		}
	}
	return both, true
}

// divide returns SQLite's quotient, and reports it if the fraction was lost.
func (q *question) divide(ctx sqlite3.Context, args ...sqlite3.Value) {
	both, areNumbers := numbersOf(ctx, args)
	if !areNumbers || both[1].float() == 0 {
		return
	}

	a, b := both[0], both[1]
	isTooLarge := a.whole == math.MinInt64 && b.whole == -1
	if a.isReal || b.isReal || isTooLarge {
		ctx.ResultFloat(a.float() / b.float())
		return
	}
	if a.whole%b.whole != 0 && !q.told["/"] {
		q.tell("/", "%d / %d is %d here: SQLite cuts the quotient of two integers; for the fraction, write x * 1.0 / y",
			a.whole, b.whole, a.whole/b.whole)
	}
	ctx.ResultInt64(a.whole / b.whole)
}

// takeRemainder returns SQLite's remainder, and reports it if SQLite truncated one of the numbers.
func (q *question) takeRemainder(ctx sqlite3.Context, args ...sqlite3.Value) {
	both, areNumbers := numbersOf(ctx, args)
	if !areNumbers {
		return
	}

	whole, hasFraction := [2]int64{}, false
	for i, n := range both {
		whole[i] = n.whole
		if n.isReal {
			whole[i] = args[i].Int64()
			hasFraction = hasFraction || n.real != math.Trunc(n.real)
		}
	}
	if whole[1] == 0 {
		return
	}
	rest := int64(0)
	if whole[1] != -1 { // the most negative number has no quotient
		rest = whole[0] % whole[1]
	}
	if hasFraction {
		q.tell("%", "%v %% %v is %d here: SQLite cuts both to integers; for the fraction, write mod(x, y)",
			both[0], both[1], rest)
	}
	if both[0].isReal || both[1].isReal {
		ctx.ResultFloat(float64(rest))
		return
	}
	ctx.ResultInt64(rest)
}

// notNumber returns the error for text that SQLite would convert to the number at its beginning.
func notNumber(what string, text []byte) error {
	const most = 60
	shown := strings.ToValidUTF8(string(text[:min(len(text), most)]), "")
	return fmt.Errorf("%s of the text %q: it is not a number, and SQLite would take the digits at its beginning, or "+
		"0; write TRY_CAST(x AS type), which gives NULL for such texts, turn it into a number with replace, or into "+
		"NULL with nullif(..., %s); WHERE and ON may come too late: CASE WHEN x NOT GLOB '*[^0-9]*' THEN ... END "+
		"does not", what, shown, sqlite3.Quote(shown))
}

// castValue passes a value to CAST, and refuses text that is not a number. Empty text is a missing
// value, as in sums. castValue adds a note if a fraction is cut.
func (q *question) castValue(ctx sqlite3.Context, args ...sqlite3.Value) {
	if err := q.cast(ctx, args[0], args[1].Int()); err != nil {
		ctx.ResultError(err)
	}
}

// tryCastValue is like castValue, but returns NULL for a value that castValue refuses.
func (q *question) tryCastValue(ctx sqlite3.Context, args ...sqlite3.Value) {
	_ = q.cast(ctx, args[0], args[1].Int()) // without a result, it is NULL
}

// cast passes a value to CAST. The result remains NULL if cast returns an error.
func (q *question) cast(ctx sqlite3.Context, value sqlite3.Value, to int) error {
	kind := value.Type()
	switch {
	case kind == sqlite3.NULL:
		return nil
	case to == castOther:
	case kind == sqlite3.FLOAT:
		if err := q.checkFraction(value.Float(), to); err != nil {
			return err
		}
	case kind == sqlite3.TEXT, kind == sqlite3.BLOB:
		return q.castText(ctx, value, to)
	}
	ctx.ResultValue(value)
	return nil
}

// castText passes text to CAST.
func (q *question) castText(ctx sqlite3.Context, value sqlite3.Value, to int) error {
	text := value.RawText()
	if n, arePlain := readDigits(text); arePlain && to == castInteger {
		ctx.ResultInt64(n)
		return nil
	}

	trimmed := trimZeros(bytes.TrimSpace(text))
	kind := kindOf(trimmed)
	switch {
	case kind == kindNull:
		return nil
	case kind == kindText:
		return notNumber("CAST", text)
	case kind == kindInteger && to == castInteger:
		ctx.ResultInt64(parseInteger(trimmed))
		return nil
	}

	f, err := strconv.ParseFloat(string(trimmed), 64)
	if kind == kindBig && to == castInteger {
		err = errTooLarge(f)
	} else if err == nil && kind == kindReal {
		err = q.checkFraction(f, to)
	}
	switch {
	case err != nil:
		return err
	case to == castInteger:
		ctx.ResultFloat(f) // SQLite does not read the exponent of 1e3
	default:
		ctx.ResultValue(value)
	}
	return nil
}

// readDigits returns the number that consists of a few digits only, as most numbers do.
func readDigits(text []byte) (n int64, arePlain bool) {
	const most = 18 // digits of any number of 64 bits
	if len(text) == 0 || len(text) > most {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// trimZeros removes leading zeros: for CAST, digits with leading zeros are not a code.
func trimZeros(text []byte) []byte {
	sign := len(text) - len(bytes.TrimLeft(text, "+-"))
	if sign > 1 || len(text) < sign+2 || text[sign] != '0' {
		return text
	}

	at := sign
	for at+1 < len(text) && text[at] == '0' && '0' <= text[at+1] && text[at+1] <= '9' {
		at++
	}
	if at == sign {
		return text
	}
	return append(bytes.Clone(text[:sign]), text[at:]...)
}

func errTooLarge(f float64) error {
	return errors.New("CAST of " + strconv.FormatFloat(f, 'g', -1, 64) + " AS INTEGER: it has more than 64 bits, and " +
		"SQLite would take the largest integer for it; cast it to REAL")
}

// checkFraction adds a note if CAST cuts the fraction of a number instead of rounding it. It
// returns an error for a number that is too large.
func (q *question) checkFraction(f float64, to int) error {
	const least, over = -1 << 63, 1 << 63
	switch to {
	case castReal, castNumeric:
		return nil
	case castInteger:
		if !(least <= f && f < over) {
			return errTooLarge(f)
		}
		if f != math.Trunc(f) && !q.told["cast"] {
			q.tell("cast", "CAST(%v AS INTEGER) is %d here: SQLite cuts the fraction; write round(x) to round, "+
				"as DuckDB does, or trunc(x) to cut", f, int64(f))
		}
		return nil
	}

	rounded := strconv.FormatFloat(f, 'f', max(0, min(to, mostScale)), 64)
	if r, err := strconv.ParseFloat(rounded, 64); err == nil && r != f {
		q.tell("decimal", "CAST(%v AS DECIMAL(..., %d)) does not round here: write round(x, %[2]d)", f, to)
	}
	return nil
}
