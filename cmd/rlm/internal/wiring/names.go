package wiring

import (
	"errors"

	"github.com/spf13/pflag"
)

// GivenName is a flag for the name under which something is stored. It refuses an empty name, for
// example from an unset variable, because nothing would be stored.
type GivenName string

// Set implements pflag.Value.
func (g *GivenName) Set(name string) error {
	if name == "" {
		return errors.New("the name is empty: nothing would be kept")
	}
	*g = GivenName(name)
	return nil
}

// String implements pflag.Value.
func (g *GivenName) String() string { return string(*g) }

// Type implements pflag.Value.
func (g *GivenName) Type() string { return "string" }

// AddSession adds the flag --session, with the name as its value.
func AddSession(flags *pflag.FlagSet, name *string, usage string) {
	flags.Var((*GivenName)(name), "session", usage)
}
