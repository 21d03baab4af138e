package main

import (
	"errors"

	"github.com/spf13/pflag"
)

// givenName is a flag of the name under which something is kept. An empty one, such as that of a
// variable that is not set, would keep nothing.
type givenName string

// Set implements pflag.Value.
func (g *givenName) Set(name string) error {
	if name == "" {
		return errors.New("the name is empty: nothing would be kept")
	}
	*g = givenName(name)
	return nil
}

// String implements pflag.Value.
func (g *givenName) String() string { return string(*g) }

// Type implements pflag.Value.
func (g *givenName) Type() string { return "string" }

// addSession adds the flag --session, whose value is the name.
func addSession(flags *pflag.FlagSet, name *string, usage string) {
	flags.Var((*givenName)(name), "session", usage)
}
