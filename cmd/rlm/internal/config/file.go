package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Bounds of a file. A complete file has two levels and a few kilobytes.
const (
	maxFile     = 64 << 10
	maxDepth    = 4
	agentsDepth = 16 // for deepTypes: the contracts of agents are nested
	maxMistakes = 20 // reported mistakes
)

// deepTypes are the types of settings that are nested.
var deepTypes = []string{"agents", "objects"}

// readBounded reads a file of bounded size. It must not be world-writable, since it decides where
// keys are sent and which walls are strong enough.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("every user may write to %s: run chmod o-w on it", path)
	}

	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return content, err
}

// decoder reads one file.
type decoder struct {
	path  string
	lines []string
	table []Setting
	out   layer
	errs  []error
}

// decodeFile decodes the content of a file. It reports every mistake, not only the first.
func decodeFile(path string, content []byte) (layer, error) {
	d := &decoder{
		path: path, lines: strings.Split(string(content), "\n"),
		table: Settings(&Config{}), out: layer{},
	}
	root, err := d.parse(content)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return d.out, nil // the file has only comments
	}

	for i := 0; i+1 < len(root.Content); i += 2 {
		d.readSetting(root.Content[i], root.Content[i+1])
		if len(d.errs) == maxMistakes {
			break // probably another program's file
		}
	}

	return d.out, errors.Join(d.errs...)
}

// parse returns the file's mapping, or nil if the file is empty.
func (d *decoder) parse(content []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics if an invariant fails
			root, err = nil, d.errorAt(nil, fmt.Errorf("the YAML reader failed: %v", r))
		}
	}()

	if err := d.refuseDirectives(); err != nil {
		return nil, err
	}

	reader := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		if err := reader.Decode(&document); errors.Is(err, io.EOF) {
			return root, nil
		} else if err != nil {
			return nil, d.syntaxError(err)
		}

		body := document.Content[0]
		if body.Kind == yaml.ScalarNode && body.ShortTag() == "!!null" && body.Style == 0 {
			continue
		}
		if root != nil {
			return nil, d.errorAt(body, errors.New("the file has a second YAML document: give only one"))
		}
		if err := d.checkPlain(body, 0, maxDepth); err != nil {
			return nil, err
		}
		if root = body; root.Kind != yaml.MappingNode {
			return nil, d.errorAt(root, errors.New("the file must be a mapping of settings, such as max_depth: 2"))
		}
	}
}

var yamlLine = lazyregexp.New(`^yaml: (?:line (\d+): )?`)

// syntaxError reports where the library found a mistake. It does not quote the file, which may
// contain keys.
func (d *decoder) syntaxError(err error) error {
	text, at := err.Error(), &yaml.Node{Line: 1, Column: 1}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			at.Line = min(n, len(d.lines))
		}
	}
	return d.errorAt(at, errors.New("the file is not valid YAML: "+text))
}

// refuseDirectives refuses directives before a document.
func (d *decoder) refuseDirectives() error {
	for i, line := range d.lines {
		switch {
		case strings.HasPrefix(line, "%"):
			return d.errorAt(&yaml.Node{Line: i + 1, Column: 1}, errNotPlain)
		case strings.TrimSpace(line) != "" && line[0] != '#':
			return nil
		}
	}
	return nil
}

var (
	errNotPlain = errors.New("tags, directives and keys with a question mark are not accepted")
	errAlias    = errors.New("anchors and aliases are not accepted")
	errTooDeep  = errors.New("lists and mappings are nested too deeply")
)

// checkPlain refuses YAML features that settings do not use.
func (d *decoder) checkPlain(n *yaml.Node, depth, deepest int) error {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "", n.Tag == "!!merge":
		return d.errorAt(n, errAlias)
	case n.Style&yaml.TaggedStyle != 0:
		return d.errorAt(n, errNotPlain)
	case depth > deepest:
		return d.errorAt(n, errTooDeep)
	}

	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && d.hasQuestionMark(n, child) {
			return d.errorAt(child, errNotPlain)
		}

		deepest := deepest
		if depth == 0 && i%2 == 1 && slices.Contains(deepTypes, d.typeOf(n.Content[i-1].Value)) {
			deepest = agentsDepth
		}
		if err := d.checkPlain(child, depth+1, deepest); err != nil {
			return err
		}
	}

	return nil
}

// hasQuestionMark reports whether a key is written as `? key`.
func (d *decoder) hasQuestionMark(mapping, key *yaml.Node) bool {
	if mapping.Style&yaml.FlowStyle == 0 {
		return key.Column != mapping.Column // the mapping begins with the mark
	}
	if key.Line < 1 || key.Line > len(d.lines) {
		return false
	}
	before := d.lines[key.Line-1][:min(max(key.Column-1, 0), len(d.lines[key.Line-1]))]
	return strings.HasSuffix(strings.TrimSpace(before), "?")
}

// errorAt adds the position in the file to an error.
func (d *decoder) errorAt(n *yaml.Node, err error) error {
	return fmt.Errorf("%s: %w", d.originOf(n), err)
}

func (d *decoder) originOf(n *yaml.Node) Origin {
	o := Origin{Kind: FromFile, Name: d.path, Line: 1, Column: 1}
	if n != nil {
		o.Line, o.Column = max(1, n.Line), max(1, n.Column)
	}
	return o
}

// readSetting reads one entry of the file.
func (d *decoder) readSetting(key, value *yaml.Node) {
	if err := d.takeSetting(key, value); err != nil {
		d.errs = append(d.errs, d.errorAt(key, err))
	}
}

func (d *decoder) takeSetting(key, value *yaml.Node) error {
	if key.Kind != yaml.ScalarNode {
		return errors.New("the name of a setting must be a word")
	}
	name := key.Value
	if err := checkKnown(d.table, name); err != nil {
		return err
	}

	raw, err := d.valueOf(name, value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	given := Given{Raw: raw, Origin: d.originOf(key)}
	if old, twice := d.out[name]; twice && old.By == name {
		return fmt.Errorf("%s is already set in line %d: remove one of the two", name, old.Origin.Line)
	}
	return d.out.takeNamed(d.table, name, given)
}

// valueOf returns a value in a form that a setting accepts: a string, []string or
// map[string]string.
func (d *decoder) valueOf(name string, n *yaml.Node) (any, error) {
	switch d.typeOf(name) {
	case "agents":
		return agentsText(n)
	case "objects":
		return objectsText(n)
	}
	switch n.Kind {
	case yaml.SequenceNode:
		items := make([]string, 0, len(n.Content))
		for _, item := range n.Content {
			text, err := scalarText(item, itemType(d.typeOf(name)))
			if err != nil {
				return nil, err
			}
			items = append(items, text)
		}
		return items, nil
	case yaml.MappingNode:
		return textsOf(n, itemType(d.typeOf(name)))
	default:
		return scalarText(n, d.typeOf(name))
	}
}

// textsOf returns a mapping of names to strings. Its errors do not quote names, since a name may be
// a misplaced secret.
func textsOf(n *yaml.Node, wanted string) (map[string]string, error) {
	all := make(map[string]string, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if _, twice := all[key.Value]; twice || key.Kind != yaml.ScalarNode {
			return nil, errors.New("every name must be a word, and may appear only once")
		}

		text, err := scalarText(n.Content[i+1], wanted)
		if err != nil {
			return nil, err
		}

		all[key.Value] = text
	}
	return all, nil
}

// itemType returns the type of the items of a list or mapping.
func itemType(kind string) string {
	if kind == "list" || kind == "pairs" {
		return "text"
	}
	return kind
}

// typeOf returns the type of the values that a name accepts.
func (d *decoder) typeOf(name string) string {
	if f := foreignByKey(name); f != nil {
		for key := range f.means("true") {
			name = key
		}
		if len(f.words) > 0 && f.words[0] == "true" {
			return "bool"
		}
	}

	for _, s := range d.table {
		if s.Key == name {
			return s.Value.Type()
		}
	}
	return ""
}

// scalarText returns a single value as a string, if it has the type that the setting expects.
func scalarText(n *yaml.Node, wanted string) (string, error) {
	kind := kindOf(n)
	var fits bool
	switch wanted {
	case "bool":
		fits = kind == isBool
	case "number":
		fits = kind == isInt
	case "amount":
		fits = kind == isInt || kind == isFloat
	case "size":
		fits = kind == isInt || kind == isText
	case "facts", "depths":
		fits = kind == isInt || kind == isFloat || kind == isText
	default:
		fits = kind == isText
	}

	if !fits {
		return "", fmt.Errorf("give %s, not %s", describeType(wanted), kind)
	}
	return n.Value, nil
}

// nodeKind describes a kind of value, for errors.
type nodeKind string

const (
	isText    nodeKind = "text"
	isBool    nodeKind = "true or false"
	isInt     nodeKind = "a number"
	isFloat   nodeKind = "a number with a fraction"
	isNoFloat nodeKind = "infinity or not-a-number"
	isNull    nodeKind = "an empty value"
	isList    nodeKind = "a list"
	isMapping nodeKind = "a mapping"
)

func kindOf(n *yaml.Node) nodeKind {
	switch n.Kind {
	case yaml.SequenceNode:
		return isList
	case yaml.MappingNode:
		return isMapping
	default: // other scalars
	}

	switch n.ShortTag() {
	case "!!bool":
		return isBool
	case "!!int":
		return isInt
	case "!!null":
		return isNull
	case "!!float":
		if strings.ContainsAny(n.Value, "nN") { // .inf and .nan
			return isNoFloat
		}
		return isFloat
	}

	return isText // dates, too
}

// describeType describes a type of value.
func describeType(kind string) string {
	return map[string]string{
		"bool": "true or false", "number": "a whole number", "amount": "a number",
		"size": "a size such as 512MiB", "time": "a time such as 30s",
		"text": "text (put quotes around it)", "word": "a word", "list": "a list of texts",
		"pairs":  "a mapping of names to texts",
		"depths": "a value, or a list with one for each depth",
		"facts":  "a value for all models, or a mapping of models to values",
	}[kind]
}
