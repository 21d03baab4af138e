package zones

import (
	"fmt"
	"sync"
	"time"
)

// locations caches the zones whose offsets were requested, by name.
var locations sync.Map

// farthest bounds the seconds of Offset: about a billion years.
const farthest = 1 << 55

// Offset returns how many seconds a zone is east of UTC, at a number of seconds since 1970 in UTC
// or in the zone's own time. A local time skipped by the clocks has the offset before the change.
// The error is that of [Read].
func Offset(name string, seconds int64, isLocal bool) (int, error) {
	location, err := locate(name)
	if err != nil {
		return 0, err
	}

	seconds = min(max(seconds, -farthest), farthest)
	at := time.Unix(seconds, 0).UTC()
	if !isLocal {
		_, offset := at.In(location).Zone()
		return offset, nil
	}
	year, month, day := at.Date()
	local := time.Date(year, month, day, at.Hour(), at.Minute(), at.Second(), 0, location)
	return int(seconds - local.Unix()), nil
}

func locate(name string) (*time.Location, error) {
	if known, ok := locations.Load(name); ok {
		return known.(*time.Location), nil
	}
	data, err := Read(name)
	if err != nil {
		return nil, err
	}
	location, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil, fmt.Errorf("cannot read the time zone %s: %w", name, err)
	}
	locations.Store(name, location)
	return location, nil
}
