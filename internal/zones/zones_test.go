package zones_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/zones"
)

// TestEveryZoneIsOne reads all zones.
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

// TestZonesHaveTheirRules looks at a change of summer time.
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
		if name, _ := time.Date(2026, day, 1, 0, 0, 0, 0, berlin).Zone(); name != want {
			t.Errorf("in month %d it is %s, want %s", day, name, want)
		}
	}
}

// TestOtherNamesAreUnknown tries names that are not in the list.
func TestOtherNamesAreUnknown(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "Europe", "Europe/", "/Europe/Berlin", "Europe//Berlin", "Europe/../Europe/Berlin",
		"../../etc/passwd", "Europe/Berlin\x00", "\x00", "europe/berlin", "Europe\\Berlin", "Mars/Base",
		strings.Repeat("x", 1<<20),
	} {
		data, err := zones.Read(name)
		if data != nil || !errors.Is(err, zones.ErrUnknown) || len(err.Error()) > 500 {
			t.Errorf("%.40q: %d bytes, %.600v", name, len(data), err)
		}
	}
}
