package flow

import (
	"slices"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// maxNodes bounds the nodes of a file.
const maxNodes = 200

// File is a workflow file. It is immutable.
type File struct {
	// Name is the name in problem reports.
	Name string
	// Title and Description are the members name and description of the file.
	Title, Description string
	// Nodes run one after another.
	Nodes []*Node
	// Folder is the folder of schemas that "$ref" may name; empty allows none.
	Folder string

	actions actionTable
	ignored []*Problem // notes on keys without effect
}

// Node is one step of a file. It sets either Uses or Run.
type Node struct {
	// Name is unique in the file. The default is "node N", counted from 1.
	Name string
	// Uses names an action. With holds its parameters; nil for none.
	Uses string
	With *Tree
	// Run is the body of a Python function.
	Run string
	// Output is the member of the state that receives the result. If it is empty, the members of
	// the result are added to the state under their own names.
	Output string

	at   *Tree // the node as a whole
	uses *Tree
}

// The keys of a file and of a node. Files of other programs contain the ignored keys, which a run
// does not need.
var (
	fileKeys    = []string{"name", "description", "nodes", "edges"}
	ignoredKeys = []string{"version", "state_schema", "settings"}
	nodeKeys    = []string{"name", "description", "uses", "run", "with", "output"}
)

// Parse reads a file whose nodes can use the actions of this package and more. The error is a
// [*FileError] with every structural problem, or names an invalid action. [File.Check] finds
// unknown actions, and wrong parameters, contracts and templates.
func Parse(name string, source []byte, more ...Action) (*File, error) {
	actions, err := newActionTable(more)
	if err != nil {
		return nil, err
	}
	tree, wrong := parseTree(source)
	if wrong != nil {
		return nil, fileError(name, []*Problem{wrong})
	}
	p := &parsing{file: &File{Name: name, actions: actions}}
	p.whole(tree)
	if err := fileError(name, p.found); err != nil {
		return nil, err
	}

	return p.file, nil
}

// parsing collects a file and its problems.
type parsing struct {
	file  *File
	found []*Problem
}

func (p *parsing) fail(at *Tree, message string) {
	p.found = append(p.found, &Problem{Line: at.Line, Column: at.Column, Message: message})
}

// whole reads the document.
func (p *parsing) whole(tree *Tree) {
	if tree.Kind != Object {
		p.fail(tree, `a workflow must be an object with "name" and "nodes"`)
		return
	}
	p.noteIgnored(tree)
	p.keys(tree, "key of a workflow", append(slices.Clone(fileKeys), ignoredKeys...))
	p.file.Title, p.file.Description = p.text(tree, "name"), p.text(tree, "description")
	nodes := tree.Get("nodes")
	switch {
	case nodes == nil:
		p.fail(tree, `"nodes" is missing: give a list of nodes`)
	case nodes.Kind != List || len(nodes.Items) == 0:
		p.fail(nodes, `"nodes" must be a list with at least one node`)
	case len(nodes.Items) > maxNodes:
		p.fail(nodes, "there are more than 200 nodes")
	default:
		for i, node := range nodes.Items {
			p.node(i, node)
		}
	}

	if edges := tree.Get("edges"); edges != nil && len(p.found) == 0 {
		p.orderNodes(edges)
	}
}

// noteIgnored notes the keys without effect.
func (p *parsing) noteIgnored(tree *Tree) {
	for _, key := range tree.Keys {
		if contains(ignoredKeys, key.Text) {
			p.file.ignored = append(p.file.ignored, &Problem{
				Line: key.Line, Column: key.Column, Message: quoteName(key.Text) + " has no effect",
			})
		}
	}
}

// keys reports unknown keys.
func (p *parsing) keys(tree *Tree, what string, known []string) {
	for _, key := range tree.Keys {
		if !contains(known, key.Text) {
			p.fail(key, describeUnknown(what, key.Text, known))
		}
	}
}

// text returns a string member, or "" if it is missing.
func (p *parsing) text(tree *Tree, key string) string {
	value := tree.Get(key)
	if value == nil {
		return ""
	}
	if value.Kind != Text {
		p.fail(value, quoteName(key)+" must be a text")
	}

	return value.Text
}

var identifier = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// node reads one node.
func (p *parsing) node(i int, tree *Tree) {
	if tree.Kind != Object {
		p.fail(tree, `a node must be an object with "uses" or "run"`)
		return
	}
	p.keys(tree, "key of a node", nodeKeys)
	n := &Node{
		at: tree, Name: p.text(tree, "name"), uses: tree.Get("uses"), Uses: p.text(tree, "uses"),
		Run: p.text(tree, "run"), With: tree.Get("with"), Output: p.text(tree, "output"),
	}

	p.text(tree, "description")
	if n.Name == "" {
		n.Name = nodeNumber(i)
	}
	for _, other := range p.file.Nodes {
		if other.Name == n.Name {
			p.fail(tree, "an earlier node has the name "+quoteName(n.Name)+": choose another")
		}
	}

	switch {
	case (n.Uses == "") == (n.Run == ""):
		p.fail(
			tree, `a node needs exactly one of "uses" (an action) and "run" (Python code)`,
		)
	case n.With != nil && n.Run != "":
		p.fail(n.With, `"with" is allowed only with "uses": the code of "run" reads the state`)
	case n.With != nil && n.With.Kind != Object:
		p.fail(n.With, `"with" must be an object of parameters by name`)
	}

	if n.Output != "" && !identifier.MatchString(n.Output) {
		p.fail(tree.Get("output"), `"output" must be a plain name, of letters, digits and _`)
	}
	p.file.Nodes = append(p.file.Nodes, n)
}
