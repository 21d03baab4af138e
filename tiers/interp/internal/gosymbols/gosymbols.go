// Package gosymbols holds the packages that Go snippets may import: the exported names of an
// allow-list of the standard library.
package gosymbols

import (
	"path"
	"reflect"
)

// tables are the packages' symbols by "import/path/name", built on demand.
var tables = map[string]func() map[string]reflect.Value{}

// Exports returns all symbols in yaegi's form. Each settable one is a copy: an
// interpreted "io.EOF = nil" would otherwise change the worker's own io.EOF.
func Exports() map[string]map[string]reflect.Value {
	all := make(map[string]map[string]reflect.Value, len(tables))
	for name, table := range tables {
		symbols := table()
		for symbol, value := range symbols {
			if value.CanSet() {
				own := reflect.New(value.Type()).Elem()
				own.Set(value)
				symbols[symbol] = own
			}
		}

		all[name] = symbols
	}

	return all
}

// Packages returns the import paths that snippets may use, each with its name.
func Packages() map[string]string {
	all := make(map[string]string, len(tables))
	for name := range tables {
		all[path.Dir(name)] = path.Base(name)
	}
	return all
}
