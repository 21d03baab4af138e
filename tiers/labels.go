package tiers

import (
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Bounds of Config.Labels.
const (
	maxLabels     = 16
	maxLabelValue = 256 // bytes
)

var labelName = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,62}$`)

// CheckLabels reports the first label that is not one: at most 16 labels, names of lower
// case letters, digits and "_.-", values of at most 256 bytes that print on one line.
func CheckLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("there are %d labels: give at most %d", len(labels), maxLabels)
	}
	for name, value := range labels {
		switch {
		case !labelName.MatchString(name):
			return fmt.Errorf("invalid label name %q: use lower case letters, digits and _.-", name)
		case len(value) > maxLabelValue:
			return fmt.Errorf("the label %s has %d bytes: give at most %d", name, len(value), maxLabelValue)
		case !utf8.ValidString(value):
			return fmt.Errorf("the label %s is not UTF-8", name)
		}
		for _, r := range value {
			if !unicode.IsPrint(r) {
				return fmt.Errorf("the label %s has the character %U, which is not printable", name, r)
			}
		}
	}
	return nil
}

// LabelLog returns log with the labels of c in all that it writes, as the group "labels".
func (c Config) LabelLog(log *slog.Logger) *slog.Logger {
	if len(c.Labels) == 0 {
		return log
	}

	attributes := make([]any, 0, len(c.Labels))
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		attributes = append(attributes, slog.String(name, c.Labels[name]))
	}
	return log.With(slog.Group("labels", attributes...))
}
