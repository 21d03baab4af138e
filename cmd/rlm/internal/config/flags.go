package config

import (
	"slices"

	"github.com/spf13/pflag"
)

// readFlags returns the layer of the flags that were given.
func readFlags(flags *pflag.FlagSet) layer {
	l := layer{}
	if flags == nil {
		return l
	}

	for _, s := range Settings(&Config{}) {
		flag := flags.Lookup(s.Flag())
		if flag == nil || !flag.Changed || s.NoFlag {
			continue
		}
		if _, ours := flag.Value.(Value); !ours {
			continue // the command's own flag with that name
		}

		l[s.Key] = Given{
			Raw:    flag.Value.String(),
			By:     s.Key,
			Origin: Origin{Kind: FromFlag, Name: "--" + flag.Name},
		}
	}

	return l
}

// In returns a function that selects the settings of some groups.
func In(groups ...Group) func(Setting) bool {
	return func(s Setting) bool { return slices.Contains(groups, s.Group) }
}

// Named returns a function that selects settings by key.
func Named(keys ...string) func(Setting) bool {
	return func(s Setting) bool { return slices.Contains(keys, s.Key) }
}

// AddFlags gives a command the flags of some settings. Flags check their values immediately; Load
// uses them.
func AddFlags(flags *pflag.FlagSet, pick func(Setting) bool) {
	for _, s := range Settings(&Config{}) {
		if s.NoFlag || !pick(s) {
			continue
		}
		if err := s.Value.Set(s.Default); err != nil {
			panic(err) // the table's default is invalid
		}
		value := s.Value
		if l, ok := value.(list); ok {
			value = &repeatedList{list: l}
		}
		flag := flags.VarPF(value, s.Flag(), "", s.Doc)
		flag.DefValue = s.Default
		if s.Default == "0" || s.Default == "false" || s.Default == "none" {
			flag.DefValue = "" // not worth showing
		}
		flag.Annotations = map[string][]string{groupKey: {string(s.Group)}}
		if c, ok := s.Value.(choice); ok {
			flag.Annotations[wordsKey] = c.from
		}
		if _, ok := s.Value.(toggle); ok {
			flag.NoOptDefVal = "true"
		}
	}
}

// The annotation keys of a flag that describe its setting.
const (
	groupKey = "rlm_group"
	wordsKey = "rlm_words"
)

// GroupOf returns the group of a flag's setting. ok is false if the flag is not a setting.
func GroupOf(flag *pflag.Flag) (group Group, ok bool) {
	found := flag.Annotations[groupKey]
	if len(found) == 0 {
		return "", false
	}
	return Group(found[0]), true
}

// WordsOf returns the words that a flag's setting accepts, or nil if it accepts other values.
func WordsOf(flag *pflag.Flag) []string { return flag.Annotations[wordsKey] }

// repeatedList is a list as a flag. The first flag replaces the default; each further flag adds to
// the list.
type repeatedList struct {
	list
	isGiven bool
}

// Set adds the items of one flag.
func (r *repeatedList) Set(text string) error {
	items := splitList(text)
	if r.isGiven {
		items = slices.Concat(*r.to, items)
	}
	if err := r.setAll(items); err != nil {
		return err
	}
	r.isGiven = true
	return nil
}
