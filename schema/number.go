package schema

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// maxDigits bounds the literal of a number. The largest float64 has 309 digits.
const maxDigits = 400

// checkNumber returns the reason for rejecting a literal, or "" if it is valid. It bounds the
// exponent because 1e-999999999 as an exact fraction would fill the memory.
func checkNumber(literal string) string {
	if isShortDecimal(literal) {
		return ""
	}
	if len(literal) > maxDigits {
		return fmt.Sprintf("a number of %d digits is too long", len(literal))
	}

	if at := strings.IndexAny(literal, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(literal[at+1:])
		if err != nil || exponent > maxDigits || exponent < -maxDigits {
			return reportRange(literal)
		}
	}
	if f, err := strconv.ParseFloat(literal, 64); err != nil || math.IsInf(f, 0) {
		return reportRange(literal)
	}
	return ""
}

// sizeOfNumber returns the size of a number within a value: see node. The literal must have passed
// checkNumber, which bounds the exponent.
func sizeOfNumber(literal string) int {
	digits := len(literal)
	if at := strings.IndexAny(literal, "eE"); at >= 0 {
		exponent, _ := strconv.Atoi(literal[at+1:]) // numbers of schemas are within the bounds, too
		digits += max(exponent, -exponent)
	}
	return 1 + digits/64
}

// reportRange returns the reason for rejecting a number beyond the range of float64.
func reportRange(literal string) string {
	return fmt.Sprintf("the number %s is out of range", clip(literal, 40))
}

// isShortDecimal reports whether a literal that the scanner recognised as a number is certainly
// within the range of a float64.
func isShortDecimal(literal string) bool {
	return literal != "" && len(literal) < 300 && !strings.ContainsAny(literal, "eE") &&
		literal[0] != '.' && literal[len(literal)-1] != '.'
}

// parseInteger returns the literal of a number without a fraction or an exponent, or false if
// the value is not an integer.
func parseInteger(literal string) (string, bool) {
	if !strings.ContainsAny(literal, "eE") {
		digits, fraction, _ := strings.Cut(literal, ".")
		if digits == "-0" {
			digits = "0"
		}
		return digits, strings.Trim(fraction, "0") == ""
	}

	r, ok := new(big.Rat).SetString(literal)
	if !ok || !r.IsInt() {
		return "", false
	}
	return r.Num().String(), true
}

var (
	integerText = lazyregexp.New(`^[+-]?[0-9]+$`)
	numberText  = lazyregexp.New(`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)
)

// parseNumber returns the JSON literal of the number in a string. It returns false for a number
// that is out of range, or is not an integer although one is required.
func parseNumber(text string, wantInteger bool) (literal string, ok bool) {
	if checkNumber(strings.TrimPrefix(text, "+")) != "" {
		return "", false
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return "", false
	}

	switch {
	case r.IsInt() && (wantInteger || integerText.MatchString(text)):
		return r.Num().String(), true
	case wantInteger:
		return "", false
	}
	return repairLiteral(text), true
}

// repairLiteral keeps a number as written, except for forms that JSON does not allow: a plus sign,
// leading zeros, and a point without digits on both sides.
func repairLiteral(text string) string {
	sign, digits := "", strings.TrimPrefix(text, "+")
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" || digits[0] < '0' || digits[0] > '9' {
		digits = "0" + digits
	}
	for _, end := range []string{"e", "E"} {
		digits = strings.Replace(digits, "."+end, end, 1)
	}
	return sign + strings.TrimSuffix(digits, ".")
}
