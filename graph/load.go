package graph

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/graph/internal/format"
	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// LoadOptions configure how Graph.Load reads files. The zero value works.
type LoadOptions struct {
	// Format is the format of all files: turtle, ntriples, trig, nquads, rdfxml, jsonld, jsonl,
	// json, csv or graphml. By default, it is determined from each file's name and content.
	Format string
	// Base resolves relative IRIs in RDF. The default is file:/// and the file's name.
	Base string
	// Comma separates the fields of CSV. The default is whichever of comma, tab, semicolon and bar
	// occurs in the header. ListComma separates labels and the elements of lists. The default is a
	// semicolon.
	Comma, ListComma rune
	// Labels apply to nodes without a label, and Type to edges without a type. The default type is
	// RELATED.
	Labels []string
	Type   string
	// MaxMissing is the maximum number of edges to nodes that neither the files nor the graph
	// contain. Such edges are left out and counted. By default, the first one is an error.
	MaxMissing int
	// MaxBytes is the maximum inflated size of each file: 4 GiB.
	MaxBytes int64
}

// Loaded reports what Graph.Load read.
type Loaded struct {
	Files        []string // their paths
	Nodes, Edges int      // the records of property graphs. Several may describe the same node
	Missing      int      // edges that were left out because one of their nodes is missing
	Notes        []string // data that the graph cannot represent, and files left out
}

// Load reads files, and folders with all files in and below them whose names look like those of
// graphs. It does not follow links in a folder. The graph receives all files or none: the error
// names the file and its line, and suggests a change.
//
// A node may occur in several places: the graph merges its labels and properties. An edge may
// precede its nodes, even in another file.
func (g *Graph) Load(ctx context.Context, o LoadOptions, paths ...string) (Loaded, error) {
	l := &loading{o: o, notes: map[string]int{}, headers: map[string]string{}}
	if o.MaxBytes <= 0 {
		l.o.MaxBytes = 4 << 30
	}
	if o.Format != "" {
		var err error
		if l.format, err = format.Parse(o.Format); err != nil {
			return Loaded{}, err
		}
	}
	defer l.close()
	if err := l.find(paths); err != nil {
		return Loaded{}, err
	}

	err := g.Update(ctx, l.load)
	if err != nil {
		return Loaded{}, err
	}
	l.done.Notes = l.listNotes()
	return l.done, nil
}

// loading is the state of a call to Load.
type loading struct {
	o       LoadOptions
	format  format.Format
	files   []*source
	dirs    []*bigtext.Dir
	headers map[string]string // headers of CSV files, by the paths to which they apply
	notes   map[string]int
	missing []string // the first edges with a missing node
	given   givenValues
	done    Loaded
}

// source is a file.
type source struct {
	path   string
	open   func() (fs.File, error)
	format format.Format
}

func (l *loading) close() {
	for _, dir := range l.dirs {
		_ = dir.Close() // was only read
	}
}

// find lists the files.
func (l *loading) find(paths []string) error {
	for _, name := range paths {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return fmt.Errorf("cannot load the graph: %w", err)
		case info.IsDir():
			err = l.findIn(name)
		case !info.Mode().IsRegular():
			err = errors.New("it is not a regular file: copy its content to a file")
		default:
			l.files = append(l.files, &source{path: name, open: func() (fs.File, error) { return os.Open(name) }})
		}
		if err != nil {
			return cannotLoad(name, err)
		}
	}

	l.dropTwins()
	if len(l.files) == 0 {
		return errors.New("cannot load a graph without files: name files or folders")
	}
	slices.SortStableFunc(l.files, func(a, b *source) int { // headers precede their rows
		return cmp.Compare(b.rank(), a.rank())
	})

	return nil
}

// dropTwins leaves out a file that was already named, directly or by its folder, because its edges
// would be added twice.
func (l *loading) dropTwins() {
	seen := map[string]bool{}
	l.files = slices.DeleteFunc(l.files, func(file *source) bool {
		place, err := filepath.Abs(file.path)
		if err == nil {
			place, err = filepath.EvalSymlinks(place)
		}
		if err != nil {
			return false // opening it reports the error
		}
		isTwin := seen[place]
		seen[place] = true
		if isTwin {
			l.notes["a file was named twice, and is loaded once"]++
		}
		return isTwin
	})
}

func (s *source) rank() int {
	if _, isHeader := headerStem(s.path); isHeader {
		return 1
	}
	return 0
}

func cannotLoad(name string, err error) error {
	return fmt.Errorf("cannot load %q: %w", name, err)
}

// findIn lists the files in a folder whose names look like those of graphs.
func (l *loading) findIn(folder string) error {
	dir, err := bigtext.OpenDir(folder)
	if err != nil {
		return err
	}
	l.dirs = append(l.dirs, dir)
	if n := dir.LeftOut()[bigtext.LinksAndSpecial]; n > 0 {
		l.notes["a link or a special file in a folder was left out"] += n
	}

	found := 0
	for _, name := range dir.Names() {
		if isHidden(name) || !format.IsKnownName(name) {
			l.notes["a file in a folder was left out: its name is not that of a graph"]++
			continue
		}
		found++
		l.files = append(l.files, &source{
			path: filepath.Join(folder, filepath.FromSlash(name)),
			open: func() (fs.File, error) { return dir.Open(name) },
		})
	}
	if found == 0 {
		return errors.New("the folder has no graph: a file is one of " + format.Known)
	}

	return nil
}

// isHidden reports whether an element of a path begins with a dot.
func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
}

// load reads all files: facts and nodes first, then edges.
func (l *loading) load(u *Update) error {
	withRDF := false
	for _, file := range l.files {
		if err := l.loadFacts(u, file); err != nil {
			return cannotLoad(file.path, err)
		}
		withRDF = withRDF || file.format.IsRDF()
	}
	if withRDF { // edges may refer to nodes from RDF
		if err := u.showRDF(); err != nil {
			return err
		}
	}

	for _, file := range l.files {
		if !file.format.IsRDF() {
			if err := l.loadEdges(u, file); err != nil {
				return cannotLoad(file.path, err)
			}
		}
		l.done.Files = append(l.done.Files, file.path)
	}
	if l.done.Missing > 0 {
		l.notes[fmt.Sprintf("an edge was left out, because its node is missing, such as %s",
			strings.Join(l.missing, ", "))] = l.done.Missing
	}
	if l.given.conflicts > 0 {
		l.notes[fmt.Sprintf("a property of a node has several values, of which the last counts, such as %s",
			strings.Join(l.given.examples, ", "))] = l.given.conflicts
	}

	return nil
}

// read opens a file, determines its format, and calls use.
func (l *loading) read(u *Update, file *source, use func(io.Reader) error) error {
	f, err := file.open()
	if err != nil {
		return err
	}
	defer f.Close()
	content, head, err := format.Open(u.ctx, f, l.o.MaxBytes)
	if err != nil {
		return err
	}

	if file.format = l.format; file.format == "" {
		if file.format, err = format.Detect(file.path, head); err != nil {
			return err
		}
	}
	if isHeader, err := l.keepHeader(file, head); isHeader || err != nil {
		return err
	}

	return use(content)
}

// loadFacts loads an RDF file, or the nodes of a property graph.
func (l *loading) loadFacts(u *Update, file *source) error {
	return l.read(u, file, func(content io.Reader) error {
		if file.format.IsRDF() {
			return l.loadRDF(u, file, content)
		}
		return format.Read(file.format, content, l.options(file), format.Sink{
			Node: func(n format.Node) error {
				l.done.Nodes++
				l.given.compare(n)
				return u.AddNode(Node{n.ID, n.Labels, n.Properties})
			},
			Note: l.note,
		})
	})
}

func (l *loading) loadRDF(u *Update, file *source, content io.Reader) error {
	base := l.o.Base
	if base == "" {
		base = baseOf(file.path)
	}
	return u.RDF(content, string(file.format), base)
}

// baseOf returns an IRI that does not reveal the file's location.
func baseOf(name string) string {
	return "file:///" + strings.ReplaceAll(path.Base(filepath.ToSlash(name)), " ", "%20")
}

// loadEdges loads the edges of a property graph.
func (l *loading) loadEdges(u *Update, file *source) error {
	return l.read(u, file, func(content io.Reader) error {
		edges := u.newEdges(func(e Edge, line int) error { return l.miss(u, file, e, line) })
		err := format.Read(file.format, content, l.options(file), format.Sink{
			Edge: func(e format.Edge) error {
				l.done.Edges++
				return edges.add(Edge{e.ID, e.From, e.To, e.Type, e.Properties}, e.Line)
			},
			Note: l.note,
		})
		if err != nil {
			return err
		}
		return edges.flush()
	})
}

// miss counts an edge with missing nodes, and returns an error if there are too many.
func (l *loading) miss(u *Update, file *source, e Edge, line int) error {
	where := fmt.Sprintf("line %d", line)
	if file.format == format.JSON {
		where = fmt.Sprintf("edge %d", line)
	}
	edge := fmt.Sprintf("%s: the edge %s from %.80q to %.80q", where, e.Type, e.From, e.To)
	l.done.Missing++
	l.done.Edges--
	if l.done.Missing > l.o.MaxMissing {
		return fmt.Errorf("%s: %w", edge, u.explainMissing(e))
	}

	const most = 3
	if len(l.missing) < most {
		l.missing = append(l.missing, edge)
	}

	return nil
}

func (l *loading) note(what string) { l.notes[what]++ }

// listNotes returns the notes with their counts.
func (l *loading) listNotes() []string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(l.notes)) {
		if n := l.notes[what]; n > 1 {
			what = fmt.Sprintf("%d ×: %s", n, what)
		}
		all = append(all, what)
	}
	return all
}

func (l *loading) options(file *source) format.Options {
	return format.Options{
		Comma: l.o.Comma, ListComma: l.o.ListComma, Header: l.headers[file.path],
		Labels: l.o.Labels, Type: l.o.Type,
	}
}

// headerEnds lists the name endings of files that contain the header of other files.
var headerEnds = []string{"-header", "_header"}

// keepHeader reports whether a file contains the header of other CSV files, as Neo4j's import
// allows: movies-header.csv applies to movies.csv, movies-1.csv and so on.
func (l *loading) keepHeader(file *source, head []byte) (bool, error) {
	if file.format != format.CSV {
		return false, nil
	}
	stem, ok := headerStem(file.path)
	if !ok {
		return false, nil
	}
	line, rest, _ := bytes.Cut(head, []byte("\n"))
	if len(bytes.TrimSpace(rest)) > 0 {
		return false, nil // the file has its own rows
	}

	found := false
	for _, other := range l.files {
		rest, ok := strings.CutPrefix(other.path, stem)
		if ok && rest != "" && strings.ContainsRune(".-_", rune(rest[0])) && other.rank() == 0 {
			l.headers[other.path] = strings.TrimRight(string(line), "\r")
			found = true
		}
	}
	if !found {
		return false, fmt.Errorf("no file has the rows of this header: name such files %s-1.csv and so on",
			filepath.Base(stem))
	}

	return true, nil
}

// headerStem returns the name of a header file without its ending.
func headerStem(name string) (string, bool) {
	base := strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), filepath.Ext(strings.TrimSuffix(name, ".gz")))
	for _, end := range headerEnds {
		if stem, ok := strings.CutSuffix(base, end); ok {
			return stem, true
		}
	}
	return "", false
}
