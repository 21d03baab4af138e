package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a file. A complete one has two levels and some kilobytes.
const (
	maxFile     = 64 << 10
	maxDepth    = 4
	maxMistakes = 20 // that are reported
)

// readBounded reads a file of bounded size that nobody but its owner's friends may
// write: what it says decides where keys go and which walls are good enough.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("everybody may write to %s: take that right away (chmod o-w)", path)
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
	table []Setting
	out   layer
	errs  []error
}

// decode reads the content of a file. It reports every mistake, not the first.
func decode(path string, content []byte) (layer, error) {
	d := &decoder{path: path, table: Settings(&Config{}), out: layer{}}
	root, err := d.parse(string(content))
	if err != nil {
		return nil, err
	}
	if root == nil {
		return d.out, nil // comments alone
	}
	for _, entry := range entriesOf(root) {
		if d.setting(entry); len(d.errs) == maxMistakes {
			break // whoever made so many has another program's file here
		}
	}
	return d.out, errors.Join(d.errs...)
}

// fail notes a mistake at a token.
func (d *decoder) fail(at *token.Token, err error) {
	d.errs = append(d.errs, d.place(at, err))
}

func (d *decoder) place(at *token.Token, err error) error {
	return fmt.Errorf("%s: %w", d.origin(at), err)
}

func (d *decoder) origin(at *token.Token) Origin {
	o := Origin{Kind: FromFile, Name: d.path, Line: 1, Column: 1}
	if at != nil && at.Position != nil {
		o.Line, o.Column = at.Position.Line, at.Position.Column
	}
	return o
}

// parse returns the document, nil if there is nothing in it. What could make the
// parser work hard is refused among the tokens, before there is a tree.
func (d *decoder) parse(content string) (ast.Node, error) {
	tokens := lexer.Tokenize(content)
	if err := d.plain(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		var broken yaml.Error
		if errors.As(err, &broken) {
			return nil, d.place(broken.GetToken(), errors.New(broken.GetMessage()))
		}
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType {
			continue
		}
		if root != nil {
			return nil, d.place(doc.Body.GetToken(), errors.New("there is a second document: give one"))
		}
		root = doc.Body
	}
	if root == nil {
		return nil, nil //nolint:nilnil // an empty file is a file
	}
	if t := root.Type(); t != ast.MappingType && t != ast.MappingValueType {
		return nil, d.place(root.GetToken(), errors.New("give settings, as in max_depth: 2"))
	}
	return root, nil
}

// plain refuses what settings have no use for.
func (d *decoder) plain(tokens token.Tokens) error {
	depth, line, entries := 0, 0, 0
	for _, t := range tokens {
		if t.Position != nil && t.Position.Line != line {
			line, entries = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return d.place(t, errors.New("anchors and aliases are not taken here"))
		case token.TagType, token.DirectiveType, token.MappingKeyType:
			return d.place(t, errors.New("tags, directives and keys with a question mark are not taken here"))
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			entries++
		case token.InvalidType:
			message := "this is not YAML"
			if t.Error != "" {
				message = t.Error
			}
			return d.place(t, errors.New(message))
		default:
		}
		if depth > maxDepth || entries > maxDepth || t.Position != nil && t.Position.IndentNum > 64 {
			return d.place(t, errors.New("this is nested too deep"))
		}
	}
	return nil
}

// entriesOf are the entries of a mapping in either of the forms that the parser
// gives it.
func entriesOf(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// setting reads one entry of the file.
func (d *decoder) setting(entry *ast.MappingValueNode) {
	at := entry.Key.GetToken()
	name := at.Value
	if err := known(d.table, name); err != nil {
		d.fail(at, err)
		return
	}
	raw, err := d.raw(name, entry.Value)
	if err == nil {
		err = d.out.take(d.table, name, Given{Raw: raw, Origin: d.origin(at)})
	} else {
		err = fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		d.fail(at, err)
	}
}

// raw is a value as a setting takes it.
func (d *decoder) raw(name string, n ast.Node) (any, error) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		items := make([]string, 0, len(n.Values))
		for _, item := range n.Values {
			text, err := scalar(item, "text")
			if err != nil {
				return nil, err
			}
			items = append(items, text)
		}
		return items, nil
	case *ast.MappingNode, *ast.MappingValueNode:
		all := map[string]string{}
		for _, entry := range entriesOf(n) {
			text, err := scalar(entry.Value, "text")
			if err != nil {
				return nil, err
			}
			all[entry.Key.GetToken().Value] = text
		}
		return all, nil
	}
	return scalar(n, d.typeOf(name))
}

// typeOf is what values of a name are.
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

// scalar is the text of a single value whose type is what a setting wants.
func scalar(n ast.Node, wanted string) (string, error) {
	if n == nil {
		return "", errors.New("there is no value")
	}
	takes := map[string][]ast.NodeType{
		"bool": {ast.BoolType}, "number": {ast.IntegerType}, "amount": {ast.IntegerType, ast.FloatType},
		"size": {ast.IntegerType, ast.StringType},
	}[wanted]
	if takes == nil {
		takes = []ast.NodeType{ast.StringType, ast.LiteralType}
	}
	for _, t := range takes {
		if n.Type() == t {
			if literal, ok := n.(*ast.LiteralNode); ok {
				return literal.Value.Value, nil
			}
			return n.GetToken().Value, nil
		}
	}
	what := map[ast.NodeType]string{
		ast.BoolType: "true or false", ast.IntegerType: "a number", ast.FloatType: "a number", ast.InfinityType: "a number",
		ast.NanType: "no number", ast.StringType: "text", ast.LiteralType: "text", ast.NullType: "no value",
		ast.SequenceType: "a list", ast.MappingType: "a mapping", ast.MappingValueType: "a mapping",
	}[n.Type()]
	return "", fmt.Errorf("this is %s, and it takes %s", what, article(wanted))
}

// article says what a type of value is.
func article(kind string) string {
	return map[string]string{
		"bool": "true or false", "number": "a whole number", "amount": "a number", "size": "a size such as 512MiB",
		"time": "a time such as 30s", "text": "text (put quotes around it)", "word": "a word", "list": "a list of texts", "pairs": "a mapping of names to texts",
	}[kind]
}
