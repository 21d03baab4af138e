package dbfile

import "encoding/binary"

// tree is a table or an index of a database.
type tree struct {
	name, table string
	root        int64
	isIndex     bool
}

// walk follows the trees from the list of tables on the first page. It finds the pages in use, and
// the lost rows from the indexes. It reports whether it could read all interior pages.
func (s *scan) walk() (isWhole bool) {
	var trees []tree
	clear(s.pages.chained) // the rows have already been read
	isWhole = s.follow(1, 0, false, func(c cell) {
		if t, ok := asTree(&c); ok && t.root > 0 {
			trees = append(trees, t)
		}
	})

	damaged, indexed := map[string]bool{}, map[string]bool{} // tables
	for _, t := range trees {
		if !t.isIndex && !s.follow(t.root, 0, false, nil) {
			damaged[t.table], isWhole = true, false
		}
	}

	for _, t := range trees {
		if !t.isIndex {
			continue
		}
		if s.follow(t.root, 0, true, func(c cell) { s.noteIndexed(&t, &c) }) {
			indexed[t.table] = true
		} else {
			isWhole = false
		}
	}

	for name := range damaged {
		if s.schema.has(name) && !indexed[name] {
			s.found.AreMoreLost = true
		}
	}

	if len(trees) == 0 && len(s.damaged) > 1 { // the first page and others
		s.found.AreMoreLost = true
	}
	return isWhole
}

// asTree decodes an entry of the list of tables.
func asTree(c *cell) (t tree, ok bool) {
	if c.isCut && len(c.values) < 4 || len(c.values) < 4 {
		return t, false
	}
	kind, isKind := c.values[0].(string)
	name, isName := c.values[1].(string)
	table, isTable := c.values[2].(string)
	root, isRoot := c.values[3].(int64)
	return tree{name, table, root, kind == "index"}, isKind && isName && isTable && isRoot
}

// noteIndexed records the values that an index has of a row that was not found.
func (s *scan) noteIndexed(t *tree, c *cell) {
	if len(c.values) < 2 {
		return
	}
	if rowid, is := c.values[len(c.values)-1].(int64); is && !s.whole[t.table][rowid] {
		s.addLost(t.table, rowid, s.schema.indexes[t.name], c.values[:len(c.values)-1])
	}
}

// maxDepth bounds the depth of a tree, as SQLite does.
const maxDepth = 20

// follow visits the pages of a tree, and calls take, if it is set, with the entries of its leaves,
// or with all entries of an index. It reports whether all pages could be read.
func (s *scan) follow(n int64, depth int, isIndex bool, take func(cell)) (isWhole bool) {
	if n < 1 || n > s.pages.count || n > 1 && s.pages.used[n] || depth > maxDepth {
		return false
	}
	s.pages.used[n] = true
	page, err := s.pages.page(n)
	if err != nil {
		return false
	}

	kind, at := treeHead(page, n)
	isInner := kind == tableInner || kind == indexInner
	switch {
	case kind != tableInner && kind != tableLeaf && kind != indexInner && kind != indexLeaf,
		isIndex != (kind == indexInner || kind == indexLeaf):
		return false
	case kind != tableInner && take != nil && s.pages.cells(page, n, take) != nil:
		return false
	case !isInner:
		return true
	}

	places, err := cellPlaces(page, at, innerHead)
	if err != nil {
		return false
	}
	isWhole = true
	for _, place := range append(places, at+8) {
		child := int64(binary.BigEndian.Uint32(page[place:]))
		isWhole = s.follow(child, depth+1, isIndex, take) && isWhole
	}
	return isWhole
}
