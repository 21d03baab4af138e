package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

// Kind is a kind of origin.
type Kind string

// The origins of values. Each overrides the previous ones.
const (
	FromDefault  Kind = "default"
	FromFile     Kind = "file"
	FromVariable Kind = "variable"
	FromFlag     Kind = "flag"
)

// Origin describes where a value is set.
type Origin struct {
	Kind Kind `json:"kind"`
	// Name is the file's path, the variable, or the flag with its dashes.
	Name string `json:"name,omitempty"`
	// Line and Column are the position of the key in the file, from 1.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// String formats the origin for display, such as config.yaml:3:1.
func (o Origin) String() string {
	switch o.Kind {
	case FromDefault:
		return "default"
	case FromFile:
		return fmt.Sprintf("%s:%d:%d", o.Name, o.Line, o.Column)
	case FromVariable, FromFlag:
	}
	return o.Name
}

// Given is a layer's value before it is checked: a string, []string or map[string]string.
type Given struct {
	Raw any
	// By is the name that was used: the setting's key, or a foreign name.
	By     string
	Origin Origin
}

// layer holds the values of one source, by key.
type layer map[string]Given

// addValue sets the value of a key, and refuses a second, different value.
func (l layer) addValue(key string, g Given) error {
	if old, there := l[key]; there && fmt.Sprint(old.Raw) != fmt.Sprint(g.Raw) {
		return fmt.Errorf("%s contradicts %s (%s): %s would be both %v and %v; keep one of them",
			g.By, old.By, old.Origin, key, g.Raw, old.Raw)
	}
	l[key] = g
	return nil
}

// takeNamed adds a value under one of our names or a foreign name. The error has no origin yet.
func (l layer) takeNamed(table []Setting, name string, g Given) error {
	g.By = name
	i := slices.IndexFunc(table, func(s Setting) bool { return s.Key == name })
	if i >= 0 {
		// This only checks the value, because the table is bound to a scratch Config.
		if err := table[i].assignRaw(g.Raw); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return l.addValue(name, g)
	}
	if err := checkKnown(table, name); err != nil {
		return err
	}

	f := foreignByKey(name)
	before := maps.Clone(l)
	if err := l.translate(f, g); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	for key, given := range l {
		if _, old := before[key]; old {
			continue
		}
		if err := findSetting(table, key).assignRaw(given.Raw); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}

	return nil
}

// checkKnown refuses a name that is not a setting's name or a supported foreign name.
func checkKnown(table []Setting, name string) error {
	names := settingKeys(table)
	for _, f := range foreigners {
		names = append(names, f.key)
	}
	if slices.Contains(names, name) {
		return nil
	}
	return unknownName("setting", name, names)
}

// findSetting returns the table's setting for an existing key.
func findSetting(table []Setting, key string) Setting {
	return table[slices.IndexFunc(table, func(s Setting) bool { return s.Key == key })]
}

// assignRaw checks a raw value and assigns it to the setting's field.
func (s Setting) assignRaw(raw any) error {
	switch raw := raw.(type) {
	case string:
		return s.Value.Set(raw)
	case []string:
		if l, ok := s.Value.(interface{ setAll([]string) error }); ok {
			return l.setAll(raw)
		}
		return fmt.Errorf("give one %s, not a list", s.Value.Type())
	case map[string]string:
		if p, ok := s.Value.(interface {
			setAll(map[string]string) error
		}); ok {
			return p.setAll(raw)
		}
		return fmt.Errorf("give one %s, not a mapping", s.Value.Type())
	}
	return errors.New("the value is missing")
}

// Sources are the sources of settings.
type Sources struct {
	// File is a YAML file that must exist. If it is empty, RLM_CONFIG names the file; otherwise
	// UserFile is read if it exists. With NoFile, Load reads no file.
	File string
	// UserFile is the file of the user's configuration directory, or empty.
	UserFile string
	// Environ is the environment, in the format of os.Environ.
	Environ []string
	// Flags are the command's flags; Load reads only those that were given.
	Flags *pflag.FlagSet
	// Over is an additional YAML file that overrides all other sources, or empty.
	Over string
}

// NoFile is the name of a file that means that no file is read.
const NoFile = "none"

// FileVariable is the environment variable that names a configuration file.
const FileVariable = prefix + "CONFIG"

// UserFile returns the usual path of the file, or "" if the user has no configuration folder.
func UserFile() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "" // without a home directory there is no file
	}
	return filepath.Join(dir, "rlm", "config.yaml")
}

// KeysFile returns the path of the file of rlm keys set, or "" without a home directory.
func KeysFile() string {
	if file := UserFile(); file != "" {
		return filepath.Join(filepath.Dir(file), "keys.json")
	}
	return ""
}

// Loaded is the configuration in force.
type Loaded struct {
	Config
	// File is the file that was read, empty if there was none.
	File    string
	origins map[string]Origin
}

// From returns the origin of a setting's value.
func (l *Loaded) From(key string) Origin { return l.origins[key] }

// Text returns the displayable value of a setting.
func (l *Loaded) Text(key string) string {
	return findSetting(Settings(&l.Config), key).Value.String()
}

// Load merges all sources. The error lists every mistake, each with its position.
func Load(s Sources) (*Loaded, error) {
	out := &Loaded{origins: map[string]Origin{}}
	file, fromFile, err := s.readFile()
	if err != nil {
		return nil, err
	}

	fromEnv, err := readVariables(s.Environ)
	if err != nil {
		return nil, err
	}

	over := layer{}
	if s.Over != "" {
		if _, over, err = (Sources{File: s.Over}).readFile(); err != nil {
			return nil, err
		}
	}

	merged := defaults()
	for _, l := range []layer{fromFile, fromEnv, readFlags(s.Flags), over} {
		maps.Copy(merged, l)
	}
	out.File = file

	for _, setting := range Settings(&out.Config) {
		given := merged[setting.Key]
		if err := setting.assignRaw(given.Raw); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", given.Origin, setting.Key, err)
		}
		out.origins[setting.Key] = given.Origin
	}

	return out, nil
}

// defaults returns the layer of the default values.
func defaults() layer {
	l := layer{}
	for _, s := range Settings(&Config{}) {
		l[s.Key] = Given{Raw: s.Default, By: s.Key, Origin: Origin{Kind: FromDefault}}
	}
	return l
}

// readFile finds and reads the file.
func (s Sources) readFile() (path string, l layer, err error) {
	path = s.File
	for _, entry := range s.Environ {
		if value, ok := strings.CutPrefix(entry, FileVariable+"="); ok && path == "" {
			path = value
		}
	}

	if path == NoFile {
		return "", layer{}, nil
	}

	if path == "" {
		if s.UserFile == "" {
			return "", layer{}, nil
		}
		_, err := os.Stat(s.UserFile)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return "", layer{}, nil
		}

		path = s.UserFile
	}

	content, err := readBounded(path)
	if err != nil {
		return "", nil, fmt.Errorf("cannot read the configuration: %w", err)
	}

	l, err = decodeFile(path, content)
	return path, l, err
}
