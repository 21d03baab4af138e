package quantity

import (
	"math"
	"testing"
	"time"
)

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 1234567: "1,234,567",
		math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Comma(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	if got := Comma(uint64(math.MaxUint64)); got != "18,446,744,073,709,551,615" {
		t.Error(got)
	}
}

func TestThingsAreCounted(t *testing.T) {
	got := []string{Plural(0, "call", ""), Plural(1, "call", ""), Plural(2000, "session is", "sessions are")}
	want := []string{"0 calls", "1 call", "2,000 sessions are"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

func TestSizesAreShown(t *testing.T) {
	for n, want := range map[uint64][2]string{
		0: {"0 B", "0 B"}, 9: {"9 B", "9 B"}, 999: {"999 B", "999 B"}, 1000: {"1000 B", "1.0 KB"},
		1024: {"1.0 KiB", "1.0 KB"}, 10240: {"10 KiB", "10 KB"}, 1 << 20: {"1.0 MiB", "1.0 MB"},
		1<<20 - 1: {"1024 KiB", "1.0 MB"}, 10_200_547: {"9.7 MiB", "10 MB"},
		math.MaxUint64: {"16 EiB", "18 EB"},
	} {
		if got := [2]string{IBytes(n), Bytes(n)}; got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
	if got := IBytes(-5); got != "0 B" {
		t.Error(got)
	}
}

func TestSizesAreRead(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "20000": 20000, "64KiB": 64 << 10, "64kib": 64 << 10, "1.5 GB": 1_500_000_000, "2g": 2_000_000_000,
		"2Gi": 2 << 30, "512 MiB": 512 << 20, "7b": 7, "7 B": 7, ".5k": 500, "15EiB": 15 << 60,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%q: got %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "b", "MiB", "-1", "1,5GiB", "1..5k", "5 QB", "5iB", "5i", "5bb", "5 kk", "5kmb", "16EiB", "1e3",
		"NaN", "5 %",
	} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

func FuzzParseBytes(f *testing.F) {
	f.Add("64KiB")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseBytes(text)
		if err != nil || n < 10 {
			return
		}
		again, err := ParseBytes(IBytes(n))
		if err != nil && n < math.MaxUint64/20*19 {
			t.Errorf("%q: its size %s cannot be read: %v", text, IBytes(n), err)
		}
		if err == nil && math.Abs(float64(again)-float64(n)) > float64(n)/19 {
			t.Errorf("%q: %d is read again as %d", text, n, again)
		}
	})
}

func TestTimesAreShownFromNow(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for age, want := range map[time.Duration]string{
		0: "now", 999 * time.Millisecond: "now", time.Second: "1 second ago", -2 * time.Second: "2 seconds from now",
		90 * time.Second: "1 minute ago", 3 * time.Hour: "3 hours ago", 26 * time.Hour: "1 day ago",
		8 * day: "1 week ago", 29 * day: "4 weeks ago", 31 * day: "1 month ago", 800 * day: "2 years ago",
	} {
		if got := Ago(now.Add(-age), now); got != want {
			t.Errorf("%s: got %q, want %q", age, got, want)
		}
	}
}
