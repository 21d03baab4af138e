package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/schema"
)

// Bounds of the files to which a schema refers.
const (
	maxRefFile  = 256 << 10 // bytes of one
	maxRefFiles = 20
)

// Contract compiles a schema of a file. A "$ref" may name another file, JSON or YAML, in or below
// the workflow's folder, with a fragment after "#". The content of that file becomes part of the
// contract. The network is never used.
func (r *Run) Contract(document any) (*schema.Contract, error) {
	return contractIn(r.folder, document)
}

func contractIn(folder string, document any) (*schema.Contract, error) {
	b := &bundle{folder: folder, names: map[string]string{}, parts: map[string]any{}}
	if RefersOutside(document) {
		whole, err := b.rewrite(document, "", 0)
		if err != nil {
			return nil, fmt.Errorf("cannot read the schema: %w", err)
		}
		if document, err = b.attach(whole); err != nil {
			return nil, fmt.Errorf("cannot use the schema: %w", err)
		}
	}

	raw, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the schema: %w", err)
	}
	contract, err := schema.Parse(raw)
	if err != nil {
		return nil, errors.New(b.nameFiles(err.Error()))
	}
	return contract, nil
}

// nameFiles replaces the names of parts of the bundle with the names of their files.
func (b *bundle) nameFiles(text string) string {
	for file, part := range b.names {
		text = strings.ReplaceAll(text, "#/$defs/"+part+"/", file+"#/")
		for _, end := range []string{" ", ":", "'", `"`, ","} {
			text = strings.ReplaceAll(text, "#/$defs/"+part+end, file+end)
		}
	}
	return text
}

// RefersOutside reports whether a schema has a "$ref" to another document.
func RefersOutside(document any) bool {
	switch v := document.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
			return true
		}
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), RefersOutside)
	case []any:
		return slices.ContainsFunc(v, RefersOutside)
	}

	return false
}

// bundle puts the documents to which a schema refers under "$defs" of one document.
type bundle struct {
	folder string
	names  map[string]string // names in parts by path of the file
	parts  map[string]any
}

// prefix is the prefix of the names of bundled parts.
const prefix = "file-"

// attach adds the bundled parts to the document.
func (b *bundle) attach(whole any) (any, error) {
	document, ok := whole.(map[string]any)
	if !ok {
		return nil, errors.New("a schema with references must be an object")
	}
	defs, _ := document["$defs"].(map[string]any)
	all := maps.Clone(b.parts)

	for name, def := range defs {
		if _, taken := all[name]; taken {
			return nil, fmt.Errorf(
				"the name %q under \"$defs\" is reserved: choose another", name,
			)
		}
		all[name] = def
	}

	document["$defs"] = all
	return document, nil
}

// rewrite returns the document of a file with its references redirected into the bundle. The
// workflow's own document has an empty file name.
func (b *bundle) rewrite(document any, file string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d levels deep", maxDepth)
	}
	switch v := document.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, value := range v {
			text, isText := value.(string)
			var err error
			switch {
			case key == "$ref" && isText:
				made[key], err = b.reference(text, file)
			case isText && file != "" && (key == "$id" || key == "$anchor" || key == "$schema"):
				err = fmt.Errorf("%s has %q: remove it; a referenced file must not have this key", file, key)
			default:
				made[key], err = b.rewrite(value, file, depth+1)
			}

			if err != nil {
				return nil, err
			}
		}
		return made, nil
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			var err error
			if made[i], err = b.rewrite(item, file, depth+1); err != nil {
				return nil, err
			}
		}
		return made, nil
	}

	return document, nil
}

// reference translates a reference in a file into a reference into the bundle.
func (b *bundle) reference(ref, file string) (string, error) {
	name, fragment, _ := strings.Cut(ref, "#")
	if name == "" {
		if file == "" {
			return ref, nil
		}
		return "#/$defs/" + b.names[file] + fragment, nil
	}

	target := path.Join(path.Dir(file), name)
	if strings.Contains(name, ":") || path.IsAbs(name) ||
		!filepath.IsLocal(filepath.FromSlash(target)) {
		return "", fmt.Errorf(
			"the reference %s leads out of the workflow's folder: give the path of a file in it",
			quoteName(ref),
		)
	}

	if b.names[target] == "" {
		if err := b.load(target); err != nil {
			return "", fmt.Errorf("the reference %s: %w", quoteName(ref), err)
		}
	}
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		return "", fmt.Errorf(
			"the reference %s: the part after # must be a path, such as #/$defs/user",
			quoteName(ref),
		)
	}

	return "#/$defs/" + b.names[target] + fragment, nil
}

// load reads one file into the bundle.
func (b *bundle) load(target string) error {
	if b.folder == "" {
		return errors.New("the workflow was not read from a folder, so its schemas cannot refer to files")
	}
	if len(b.names) >= maxRefFiles {
		return fmt.Errorf("the schemas refer to more than %d files", maxRefFiles)
	}

	root, err := os.OpenRoot(b.folder)
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.FromSlash(target)
	info, err := root.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return errors.New("it is not a regular file")
	}

	file, err := root.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxRefFile+1))
	if err != nil {
		return err
	}
	if len(text) > maxRefFile {
		return fmt.Errorf("it has more than %d bytes", maxRefFile)
	}

	document, err := documentOf(target, text)
	if err != nil {
		return err
	}
	b.names[target] = prefix + strconv.Itoa(len(b.names)+1)
	part, err := b.rewrite(document, target, 0)
	if err != nil {
		return err
	}

	b.parts[b.names[target]] = part
	return nil
}

// documentOf reads JSON, or else YAML. It tries JSON first, because JSON with tabs is not valid
// YAML.
func documentOf(name string, text []byte) (any, error) {
	if json.Valid(text) {
		return Decode(text)
	}
	tree, wrong := parseTree(text)
	if wrong != nil {
		wrong.File = name
		return nil, errors.New(wrong.String())
	}

	return tree.Plain(), nil
}
