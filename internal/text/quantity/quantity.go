// Package quantity shows counts, sizes and times to people, and reads sizes that they type.
package quantity

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Integer is the type of a count or a number of bytes.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Comma groups the digits of a number, as in 1,234,567.
func Comma[N Integer](n N) string {
	digits, sign := fmt.Sprint(n), ""
	if n < 0 {
		digits, sign = digits[1:], "-"
	}
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return sign + digits
}

// Plural formats a count, as in "1 call" or "2,000 calls". If many is empty, the plural is one with
// an s appended.
func Plural[N Integer](n N, one, many string) string {
	switch {
	case n == 1:
		return "1 " + one
	case many == "":
		many = one + "s"
	}
	return Comma(n) + " " + many
}

// IBytes shows a size in powers of 1024, as in "1.5 MiB". A negative size is shown as 0.
func IBytes[N Integer](n N) string { return showSize(n, 1024, "iB") }

// Bytes shows a size in powers of 1000, as in "1.5 MB". A negative size is shown as 0.
func Bytes[N Integer](n N) string { return showSize(n, 1000, "B") }

const prefixes = "KMGTPE"

// showSize formats a size with two digits, or with more digits but no fraction.
func showSize[N Integer](n N, base float64, unit string) string {
	size := float64(max(n, 0))
	if size < 10 {
		return fmt.Sprintf("%.0f B", size)
	}

	power := 0
	for ; size >= base; power++ {
		size /= base
	}
	if power > 0 {
		unit = prefixes[power-1:power] + unit
	} else {
		unit = "B"
	}

	if size = math.Round(size*10) / 10; size < 10 {
		return fmt.Sprintf("%.1f %s", size, unit)
	}
	return fmt.Sprintf("%.0f %s", size, unit)
}

// scales maps the units of sizes, without their B, to bytes.
var scales = map[string]float64{
	"":  1,
	"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40, "pi": 1 << 50, "ei": 1 << 60,
}

// ParseBytes reads a size such as "20000", "64KiB", "1.5 GB" or "2g", in bytes. The case of a unit
// does not matter.
func ParseBytes(text string) (uint64, error) {
	number := strings.TrimRight(text, "bBiIkKmMgGtTpPeE ")
	if strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a size", text)
	}
	size, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size", text)
	}

	unit := strings.ToLower(strings.TrimSpace(text[len(number):]))
	scale, found := scales[strings.TrimSuffix(unit, "b")]
	if !found {
		return 0, fmt.Errorf("size %q has an unknown unit: give B, KB, MiB or another", text)
	}
	if size *= scale; size >= math.MaxUint64 {
		return 0, fmt.Errorf("size %q is too large", text)
	}
	return uint64(size), nil
}

const day = 24 * time.Hour

// units lists the units of ages, longest first.
var units = []struct {
	length time.Duration
	name   string
}{
	{365 * day, "year"},
	{30 * day, "month"},
	{7 * day, "week"},
	{day, "day"},
	{time.Hour, "hour"},
	{time.Minute, "minute"},
	{time.Second, "second"},
}

// Ago shows the difference between a time and now in its largest unit, as in "3 hours ago".
func Ago(t, now time.Time) string {
	age, side := now.Sub(t), "ago"
	if age < 0 {
		age, side = -age, "from now"
	}

	for _, unit := range units {
		if n := int64(age / unit.length); n > 0 {
			return Plural(n, unit.name, "") + " " + side
		}
	}
	return "now"
}
