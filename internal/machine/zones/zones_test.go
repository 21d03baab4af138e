package zones_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/machine/zones"
)

// TestEveryZoneIsOne checks that every named zone is valid.
func TestEveryZoneIsOne(t *testing.T) {
	names := zones.Names()
	if len(names) < 400 || !slices.IsSorted(names) {
		t.Fatalf("%d names, sorted: %t", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		data, err := zones.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := time.LoadLocationFromTZData(name, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestZonesHaveTheirRules checks a change to daylight saving time.
func TestZonesHaveTheirRules(t *testing.T) {
	data, err := zones.Read("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	berlin, err := time.LoadLocationFromTZData("Europe/Berlin", data)
	if err != nil {
		t.Fatal(err)
	}
	for want, day := range map[string]time.Month{"CET": time.January, "CEST": time.July} {
		t.Run(want, func(t *testing.T) {
			if name, _ := time.Date(2026, day, 1, 0, 0, 0, 0, berlin).Zone(); name != want {
				t.Errorf("in month %d it is %s, want %s", day, name, want)
			}
		})
	}
}

// TestOtherNamesAreUnknown tries names that are not in the list.
func TestOtherNamesAreUnknown(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "Europe", "Europe/", "/Europe/Berlin", "Europe//Berlin", "Europe/../Europe/Berlin",
		"../../etc/passwd", "Europe/Berlin\x00", "\x00", "europe/berlin", "Europe\\Berlin", "Mars/Base",
		strings.Repeat("x", 1<<20),
	} {
		t.Run(fmt.Sprintf("%.60s", name), func(t *testing.T) {
			data, err := zones.Read(name)
			if data != nil || !errors.Is(err, zones.ErrUnknown) || len(err.Error()) > 500 {
				t.Errorf("%.40q: %d bytes, %.600v", name, len(data), err)
			}
		})
	}
}

// TestOffsets checks offsets before, during and after daylight saving time.
func TestOffsets(t *testing.T) {
	seconds := func(text string) int64 {
		at, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.Unix()
	}

	for _, test := range []struct {
		name, at string
		isLocal  bool
		want     int
	}{
		{"Europe/Berlin", "2024-01-01 00:00:00", false, 3600},
		{"Europe/Berlin", "2024-03-31 00:59:59", false, 3600},
		{"Europe/Berlin", "2024-03-31 01:00:00", false, 7200},
		{"Europe/Berlin", "2024-03-31 01:30:00", true, 3600},
		{"Europe/Berlin", "2024-03-31 02:30:00", true, 3600},
		{"Europe/Berlin", "2024-03-31 03:30:00", true, 7200},
		{"Europe/Berlin", "1818-07-21 21:40:32", true, 3208}, // solar time
		{"Europe/Berlin", "2424-07-01 00:00:00", true, 7200},
		{"Australia/Eucla", "2015-07-21 21:40:32", true, 31500},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := zones.Offset(test.name, seconds(test.at), test.isLocal)
			if err != nil || got != test.want {
				t.Errorf("%s at %s: %d, %v; want %d", test.name, test.at, got, err, test.want)
			}
		})
	}
	for _, name := range []string{"", "Europe", "../zones.zip", "Local", "europe/berlin"} {
		t.Run(name, func(t *testing.T) {
			if _, err := zones.Offset(name, 0, false); !errors.Is(err, zones.ErrUnknown) {
				t.Errorf("%q: %v", name, err)
			}
		})
	}
	for _, at := range []int64{-1 << 63, 1<<63 - 1} {
		if _, err := zones.Offset("UTC", at, true); err != nil {
			t.Error(err)
		}
	}
}
