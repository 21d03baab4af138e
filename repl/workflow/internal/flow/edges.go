package flow

import "slices"

// The ends of a line of edges.
const (
	edgeStart = "__start__"
	edgeEnd   = "__end__"
)

var edgeKeys = []string{"from", "to", "type"}

// oneLine is the message about invalid edges.
const oneLine = "edges must form one line without branches or loops"

// orderNodes puts the nodes in the order of a file's edges, which must form one line through all
// nodes. The first edge, from __start__, and the last, to __end__, are optional.
func (p *parsing) orderNodes(edges *Tree) {
	if edges.Kind != List {
		p.fail(edges, `"edges" must be a list of objects with "from" and "to"`)
		return
	}
	next := p.readEdges(edges)
	if len(p.found) > 0 || len(edges.Items) == 0 {
		return
	}

	from, named := next[edgeStart]
	if !named {
		from = p.firstNode(next)
	}
	var line []*Node
	for name := from; name != edgeEnd && name != ""; name = next[name] {
		n := p.nodeNamed(name)
		if n == nil || slices.Contains(line, n) {
			p.fail(edges, `"edges" lead back to node `+quoteName(name)+": "+oneLine)
			return
		}
		line = append(line, n)
	}

	for _, n := range p.file.Nodes {
		if !slices.Contains(line, n) {
			p.fail(n.at, "the line of edges from "+edgeStart+" does not reach node "+quoteName(n.Name))
		}
	}
	p.file.Nodes = line
}

// readEdges returns the node after each node. It reports edges that do not form a line.
func (p *parsing) readEdges(edges *Tree) map[string]string {
	next, entered := map[string]string{}, map[string]bool{}
	for _, edge := range edges.Items {
		if edge.Kind != Object {
			p.fail(edge, `an edge must be an object with "from" and "to"`)
			continue
		}
		for _, key := range edge.Keys {
			if !contains(edgeKeys, key.Text) {
				p.fail(key, "an edge with "+quoteName(key.Text)+
					" is not supported: nodes run one after the other, so branch in the code of a node")
			}
		}
		if kind := p.text(edge, "type"); kind != "" && kind != "normal" {
			p.fail(edge.Get("type"), "an edge of type "+quoteName(kind)+" is not supported: use type normal")
		}

		from, to := p.edgeEnd(edge, "from", edgeStart), p.edgeEnd(edge, "to", edgeEnd)
		switch {
		case from == "" || to == "":
		case next[from] != "":
			p.fail(edge, "a second edge leaves "+quoteName(from)+": "+oneLine)
		case entered[to]:
			p.fail(edge, "a second edge enters "+quoteName(to)+": "+oneLine)
		default:
			next[from], entered[to] = to, true
		}
	}

	return next
}

// edgeEnd returns the name at one end of an edge: a node, or outer.
func (p *parsing) edgeEnd(edge *Tree, key, outer string) string {
	name := p.text(edge, key)
	switch {
	case edge.Get(key) == nil:
		p.fail(edge, quoteName(key)+" is missing: name a node, or "+outer)
	case name != "" && name != outer && p.nodeNamed(name) == nil:
		p.fail(edge.Get(key), "there is no node "+quoteName(name))
	default:
		return name
	}
	return ""
}

// firstNode returns the first node that no edge enters, or "".
func (p *parsing) firstNode(next map[string]string) string {
	for _, n := range p.file.Nodes {
		entered := false
		for _, to := range next {
			entered = entered || to == n.Name
		}
		if !entered {
			return n.Name
		}
	}
	return ""
}

// nodeNamed returns the node with a name, or nil.
func (p *parsing) nodeNamed(name string) *Node {
	for _, n := range p.file.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}
