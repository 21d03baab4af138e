package schema

import (
	"errors"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// formats are those that differ from the library's. A time may leave out the offset from
// UTC, and a date-time may have a space between date and time, as Python's isoformat and
// models write them.
var formats = []*jsonschema.Format{
	{Name: "date-time", Validate: validateLayouts(
		"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
		"2006-01-02T15:04", "2006-01-02 15:04")},
	{Name: "time", Validate: validateLayouts(
		"15:04:05.999999999Z07:00", "15:04:05.999999999", "15:04")},
}

var errLayout = errors.New("it is not in ISO 8601 format")

// validateLayouts returns a function that accepts times in one of several layouts.
func validateLayouts(layouts ...string) func(any) error {
	return func(value any) error {
		text, ok := value.(string)
		if !ok {
			return nil
		}
		for _, layout := range layouts {
			if _, err := time.Parse(layout, text); err == nil {
				return nil
			}
		}
		return errLayout
	}
}
