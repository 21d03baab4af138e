package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// Bind assigns positional arguments to parameters, and refuses surplus ones. The last parameter
// does not collect further arguments; the caller itself binds a signature with *names.
func Bind(call tiers.Call, params []string) (map[string]tiers.Value, error) {
	args := make(map[string]tiers.Value, len(call.Args)+len(call.Named))
	if len(call.Args) > len(params) {
		return nil, fmt.Errorf(
			"%s takes %d arguments (%s), %d were given", call.Function, len(params),
			strings.Join(params, ", "), len(call.Args),
		)
	}
	for i, value := range call.Args {
		args[params[i]] = value
	}
	for name, value := range call.Named {
		if !slices.Contains(params, name) {
			return nil, fmt.Errorf("%s has no parameter %q: it takes %s", call.Function, name,
				strings.Join(params, ", "))
		}
		if _, twice := args[name]; twice {
			return nil, fmt.Errorf("%s got %q twice", call.Function, name)
		}
		args[name] = value
	}
	return args, nil
}
