package code

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

const graphLong = `Load, query and convert knowledge graphs, without a model.

Files are RDF (Turtle, N-Triples, N-Quads, TriG, RDF/XML, JSON-LD) or property graphs (JSON
Lines, JSON of networkx, CSV of Neo4j's import, GraphML), also compressed with gzip. A
folder stands for all its graph files. Without FILE, the setting graph names the files.

Exit codes: 0 success; 1 the query is wrong; 2 usage error, or a file is not a graph; 4 a
limit was exceeded; 5 the output could not be written.`

// NewGraph makes the command rlm graph.
func NewGraph(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Load, query and convert knowledge graphs",
		Long:  graphLong,
	}
	cmd.AddCommand(newGraphLoad(e), newGraphQuery(e), newGraphSPARQL(e), newGraphExport(e), newGraphStats(e))
	return cmd
}

// graphFlags are the flags of the sub-commands of rlm graph.
type graphFlags struct {
	json, quiet bool
	params      []string
	format      string
	output      string
	missing     int
}

// command makes a command that loads files and uses the graph. With a query, the first argument is
// the query, or "-" for stdin.
func (f *graphFlags) command(
	e *cli.Env, use, short, example string, hasQuery bool,
	run func(ctx context.Context, g *graph.Graph, query string) error,
) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			query := ""
			if hasQuery {
				if len(args) == 0 {
					return cli.Usage(errors.New("give a query in quotes, or - to read it from stdin"))
				}
				var err error
				if query, err = readQuery(e, args[0]); err != nil {
					return cli.Usage(err)
				}
				args = args[1:]
			}
			return f.withGraph(cmd.Context(), e, args, func(g *graph.Graph) error {
				return run(cmd.Context(), g, query)
			})
		},
	}
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "print errors on stderr, but no notes")
	cmd.Flags().IntVar(&f.missing, "missing", 0,
		"leave out up to `N` edges whose nodes are missing (default 0)")
	config.AddFlags(cmd.Flags(), func(s config.Setting) bool {
		return config.In(config.Graphs)(s) && !config.Named("graph_errors", "remember")(s) ||
			config.Named("cache_dir")(s)
	})
	return cmd
}

// maxGraphQuery is the maximum size of a query, in bytes.
const maxGraphQuery = 1 << 20

func readQuery(e *cli.Env, arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	return cli.ReadAll(e.Stdin, maxGraphQuery, "the query")
}

// withGraph loads a command's files, and passes the graph to use.
func (f *graphFlags) withGraph(
	ctx context.Context, e *cli.Env, paths []string, use func(*graph.Graph) error,
) error {
	paths = slices.Concat(e.Settings.Graph, paths)
	if f.missing < 0 {
		return cli.Usage(fmt.Errorf("--missing %d: give a number from 0", f.missing))
	}
	if len(paths) == 0 {
		return cli.Usage(errors.New("no graph: name files or folders"))
	}
	note := (&ExecFlags{Quiet: f.quiet}).Note(e)
	g, err := wiring.OpenGraph(ctx, e, note)
	if err != nil {
		return cli.Broken(err)
	}
	defer g.Close()
	if err := wiring.LoadGraphs(ctx, g, graph.LoadOptions{MaxMissing: f.missing}, paths, note); err != nil {
		return cli.Usage(err)
	}
	return exitForQuery(use(g))
}

// exitForQuery gives the failure of a query its exit code.
func exitForQuery(err error) error {
	var exit *cli.ExitError
	var wrong *graph.QueryError
	var limit *graph.LimitError
	switch {
	case err == nil, errors.As(err, &exit):
		return err
	case errors.As(err, &limit):
		return cli.Exit(cli.ExitLimit, err)
	case errors.As(err, &wrong), errors.Is(err, graph.ErrReadOnly):
		return cli.Exit(cli.ExitRaised, err)
	}
	return cli.Broken(err)
}

func newGraphLoad(e *cli.Env) *cobra.Command {
	f := &graphFlags{}
	return f.command(e, "load FILE...", "Check graph files, and summarise their content",
		"  rlm graph load people.ttl ontology.ttl", false,
		func(ctx context.Context, g *graph.Graph, _ string) error { return f.showStats(ctx, e, g) })
}

func newGraphStats(e *cli.Env) *cobra.Command {
	f := &graphFlags{}
	cmd := f.command(e, "stats FILE...", "Count nodes, relationships, stated facts and inferred facts",
		"  rlm graph stats data.ttl --json", false,
		func(ctx context.Context, g *graph.Graph, _ string) error {
			if _, err := g.SPARQL(ctx, "ASK {}"); err != nil { // computes the inferred facts
				return err
			}
			return f.showStats(ctx, e, g)
		})
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// showStats prints the contents of a graph.
func (f *graphFlags) showStats(ctx context.Context, e *cli.Env, g *graph.Graph) error {
	s, err := g.Stats(ctx)
	if err != nil {
		return err
	}
	if f.json {
		return cli.PrintLine(e.Stdout, s)
	}

	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	show := func(name string, n int) {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", name, quantity.Comma(n))
	}
	show("nodes", s.Nodes)
	show("relationships", s.Edges)
	show("facts in RDF", s.Triples)
	if s.IsInferred {
		show("inferred facts", s.Inferred)
	}
	for _, c := range s.Labels {
		show("label "+cli.Escape(c.Name), c.Count)
	}
	for _, c := range s.Types {
		show("type "+cli.Escape(c.Name), c.Count)
	}
	return w.Flush()
}

func newGraphQuery(e *cli.Env) *cobra.Command {
	f := &graphFlags{}
	cmd := f.command(e, "query CYPHER FILE...", "Run a Cypher query",
		`  rlm graph query 'MATCH (p:Person) RETURN p.name, p.age LIMIT 5' people.ttl
  rlm graph query 'MATCH (p {id: $id}) RETURN p' graph.jsonl --param id='"ada"' --json`, true,
		func(ctx context.Context, g *graph.Graph, query string) error {
			params, err := f.readParams()
			if err == nil {
				err = f.checkFormat()
			}
			if err != nil {
				return cli.Usage(err)
			}
			rows, err := g.Cypher(ctx, query, params)
			if err != nil {
				return err
			}
			return f.showRows(e, rows.Columns, rows.Rows, rows.Truncated)
		})
	cmd.Flags().StringArrayVar(&f.params, "param", nil,
		"parameter of the query, as `NAME=JSON`; repeatable")
	f.addRowFormat(cmd.Flags())
	return cmd
}

// readParams reads the values of --param.
func (f *graphFlags) readParams() (map[string]any, error) {
	params := map[string]any{}
	for _, given := range f.params {
		name, text, ok := strings.Cut(given, "=")
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var value any
		if !ok || name == "" || decoder.Decode(&value) != nil || decoder.More() {
			return nil, fmt.Errorf(`--param %q: give NAME=JSON, such as id='"ada"' or n=3`, given)
		}
		if err := checkNumbers(value); err != nil {
			return nil, fmt.Errorf("--param %q: %w", given, err)
		}
		params[name] = value
	}
	return params, nil
}

// checkNumbers refuses JSON numbers that a graph cannot represent.
func checkNumbers(value any) error {
	var errs []error
	switch v := value.(type) {
	case json.Number:
		_, err := v.Int64()
		if strings.ContainsAny(string(v), ".eE") {
			_, err = v.Float64()
		}
		if err != nil {
			return fmt.Errorf("the number %s does not fit in 64 bits", cli.Shorten(string(v), 40))
		}
	case []any:
		for _, item := range v {
			errs = append(errs, checkNumbers(item))
		}
	case map[string]any:
		for _, item := range v {
			errs = append(errs, checkNumbers(item))
		}
	}
	return errors.Join(errs...)
}

func newGraphSPARQL(e *cli.Env) *cobra.Command {
	f := &graphFlags{}
	cmd := f.command(e, "sparql QUERY FILE...", "Run a SPARQL query over stated and inferred facts",
		`  rlm graph sparql 'SELECT ?c { ?c rdfs:subClassOf* ?d }' ontology.ttl
  rlm graph sparql 'CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }' data.ttl`, true,
		func(ctx context.Context, g *graph.Graph, query string) error {
			if err := f.checkFormat(); err != nil {
				return cli.Usage(err)
			}
			a, err := g.SPARQL(ctx, query)
			switch {
			case err != nil:
				return err
			case a.Kind == "boolean":
				_, err = fmt.Fprintln(e.Stdout, a.Boolean)
				return err
			case a.Kind == "triples":
				_, err = io.WriteString(e.Stdout, e.Harmless(e.Stdout, a.Triples))
				return cli.JoinExit(err, truncation(a.Truncated))
			}
			return f.showRows(e, a.Columns, a.Rows, a.Truncated)
		})
	f.addRowFormat(cmd.Flags())
	return cmd
}

func newGraphExport(e *cli.Env) *cobra.Command {
	f := &graphFlags{}
	cmd := f.command(e, "export FILE...", "Write a graph in another format",
		`  rlm graph export people.ttl --format turtle
  rlm graph export data.ttl --output data.nt
  rlm graph export people.ttl --format csv --output people`, false,
		func(ctx context.Context, g *graph.Graph, _ string) error { return f.export(ctx, e, g) })
	cmd.Flags().StringVar(&f.format, "format", "",
		"`format` of the output: "+strings.Join(wiring.DumpFormats, ", ")+", csv (default: by the name of --output)")
	cmd.Flags().StringVar(&f.output, "output", "",
		"`file` for the graph (default: stdout); for csv the folder of nodes.csv and edges.csv")
	return cmd
}

func (f *graphFlags) export(ctx context.Context, e *cli.Env, g *graph.Graph) (err error) {
	format := f.format
	switch {
	case format == "" && f.output == "":
		format = wiring.DumpFormats[0]
	case format == "":
		format, err = wiring.DumpFormat(f.output)
	case format == "csv" && f.output == "":
		err = errors.New("--format csv writes two files: name a folder for them with --output")
	case format != "csv" && !slices.Contains(wiring.DumpFormats, format):
		err = fmt.Errorf("--format %q: give one of %s", format, strings.Join(append(wiring.DumpFormats, "csv"), ", "))
	}
	if err != nil {
		return cli.Usage(err)
	}

	var notes []string
	dump := func(w io.Writer) error {
		notes, err = g.Dump(ctx, w, format)
		return err
	}
	switch {
	case format == "csv":
		notes, err = exportCSV(ctx, g, f.output)
	case f.output == "":
		stdout, _ := e.SnippetOutput() // a graph may hold control sequences, too
		err = dump(stdout)
		stdout.Flush()
	default:
		err = cli.ReplaceFile(f.output, dump)
	}
	if err != nil && f.output != "" {
		err = fmt.Errorf("cannot write the graph to %s: %w", f.output, err)
	}
	note := (&ExecFlags{Quiet: f.quiet}).Note(e)
	for _, what := range notes {
		note("%s", cli.Escape(what))
	}
	return err
}

// exportCSV writes a graph as nodes.csv and edges.csv into a folder.
func exportCSV(ctx context.Context, g *graph.Graph, folder string) (notes []string, err error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	err = cli.ReplaceFile(filepath.Join(folder, "nodes.csv"), func(nodes io.Writer) error {
		return cli.ReplaceFile(filepath.Join(folder, "edges.csv"), func(edges io.Writer) error {
			notes, err = g.DumpCSV(ctx, nodes, edges)
			return err
		})
	})
	return notes, err
}
