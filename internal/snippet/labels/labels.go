// Package labels checks the labels of a session, and adds them to its log.
package labels

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// The bounds documented at tiers.Config.Labels.
const (
	maxLabels     = 16
	maxLabelValue = 256 // bytes
)

var labelName = lazyregexp.New(`^[a-z][a-z0-9_.-]{0,62}$`)

// Check returns an error for the first invalid label. There may be at most 16 labels; a name
// consists of lower-case letters, digits and "_.-"; a value has at most 256 bytes, all printable on
// one line.
func Check(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("there are %d labels: give at most %d", len(labels), maxLabels)
	}
	for name, value := range labels {
		switch {
		case !labelName.MatchString(name):
			return fmt.Errorf("invalid label name %q: begin with a lower case letter, and use "+
				"at most 63 lower case letters, digits and _.-", name)
		case len(value) > maxLabelValue:
			return fmt.Errorf("the value of the label %s has %d bytes: give at most %d",
				name, len(value), maxLabelValue)
		case !utf8.ValidString(value):
			return fmt.Errorf("the value of the label %s is not UTF-8", name)
		}
		for _, r := range value {
			if !unicode.IsPrint(r) {
				return fmt.Errorf("the value of the label %s has the character %U, which is not printable",
					name, r)
			}
		}
	}
	return nil
}

// AddTo returns a logger that adds the labels to each message, as the group "labels".
func AddTo(log *slog.Logger, labels map[string]string) *slog.Logger {
	if len(labels) == 0 {
		return log
	}

	attributes := make([]any, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		attributes = append(attributes, slog.String(name, labels[name]))
	}
	return log.With(slog.Group("labels", attributes...))
}

// tenantKey is the context key of the tenant.
type tenantKey struct{}

// WithTenant returns a context whose work belongs to the tenant that the labels name, by the label
// "tenant" or otherwise by all labels together.
func WithTenant(ctx context.Context, labels map[string]string) context.Context {
	if len(labels) == 0 {
		return ctx
	}
	tenant, isNamed := labels["tenant"]
	if !isNamed {
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			tenant += name + "=" + labels[name] + "\n"
		}
	}
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// Tenant returns the tenant set by [WithTenant], or an empty string. Tenants take turns at scarce
// resources.
func Tenant(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}
