package loops

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// RunSpec records how a run was started, so that another process can start it again.
type RunSpec struct {
	// Args are the command's arguments, without the question if it is one of them.
	Args     []string `json:"args"`
	Question string   `json:"question"`
	Dir      string   `json:"dir"`
	// Unnamed reports that the user did not name the run, which is removed when there are enough
	// newer ones.
	Unnamed bool `json:"unnamed,omitempty"`
}

// With returns the whole command line with additional flags.
func (s *RunSpec) With(flags ...string) []string {
	if s.Question != "" {
		return slices.Concat(s.Args, flags, []string{"--", s.Question})
	}
	if i := slices.Index(s.Args, "--"); i >= 0 {
		return slices.Concat(s.Args[:i], flags, s.Args[i:])
	}
	return slices.Concat(s.Args, flags)
}

// withoutQuestion removes the question from the arguments. It keeps a flag's value that equals the
// question.
func withoutQuestion(args []string, question string, flags *pflag.FlagSet) []string {
	for i, arg := range args {
		if arg != question || i > 0 && takesValue(args[i-1], flags) {
			continue
		}
		rest := slices.Delete(slices.Clone(args), i, i+1)
		return slices.DeleteFunc(rest, func(arg string) bool { return arg == "--" })
	}
	return args
}

// takesValue reports whether the next argument is the value of a flag.
func takesValue(arg string, flags *pflag.FlagSet) bool {
	var flag *pflag.Flag
	switch name, isLong := strings.CutPrefix(arg, "--"); {
	case isLong && name != "":
		flag = flags.Lookup(name)
	case len(arg) == 2 && arg[0] == '-':
		flag = flags.ShorthandLookup(arg[1:])
	}
	return flag != nil && flag.NoOptDefVal == ""
}
