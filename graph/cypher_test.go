package graph_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/graph"
)

func TestDatesAndTimes(t *testing.T) {
	g := open(t, graph.Config{})
	for query, want := range map[string]string{
		"date('2024-02-29') + duration('P1Y')":                                "2025-02-28",
		"date({year: 2024, week: 1})":                                         "2024-01-01",
		"date('2024-02-29').ordinalDay":                                       "60",
		"datetime('2024-03-01T10:00:00.123456789+01:00').nanosecond":          "123456789",
		"datetime('2024-03-01T10:00+01:00') = datetime('2024-03-01T09:00Z')":  "false",
		"datetime('2024-03-01T10:00+01:00') >= datetime('2024-03-01T08:59Z')": "true",
		"localtime('12:30') + duration({hours: 12.5})":                        "01:00",
		"time({hour: 12, timezone: '-01:30'})":                                "12:00-01:30",
		"datetime.truncate('month', date('2024-03-17'), {day: 2})":            "2024-03-02T00:00Z",
		"duration.between(date('2024-01-31'), date('2024-03-01'))":            "P1M1D",
		"duration.inDays(date('2024-02-28'), date('2024-03-01')).days":        "2",
		"toString(duration({months: 0.75}))":                                  "P22DT19H51M49.5S",
		"duration('PT1M') * 2.5":                                              "PT2M30S",
		"datetime.fromepoch(1, 5).epochSeconds":                               "1",
		"date() = date.transaction()":                                         "true",
		"date('-0001-01-01') < date('+10000-01-01')":                          "true",
		"date(null)": "<nil>",
		"[d IN [date('2024-01-02'), date('2023-01-02')] WHERE d.year = 2024 | d.month]": "[1]",
	} {
		t.Run(fmt.Sprintf("%.60s", query), func(t *testing.T) {
			expect(t, rows(t, g, "RETURN "+query+" AS x", nil), "[x] [map[x:"+want+"]]")
		})
	}

	for _, query := range []string{
		"time({hour: 1, timezone: 'Europe/Paris'})", "datetime({year: 2024, timezone: '../zones.zip'})",
		"date('2024-02-30')", "date({month: 1})", "date({year: 2024, day: 3})", "time('25:00')",
		"localtime({minute: 1})", "datetime('2024-01-01T00:00[Mars/Base]')", "duration('P')",
		"date({year: 999999999999})", "date('2024-01-01') + duration({years: 9e17})",
		"duration({days: 9e300})", "date.truncate('fortnight', date('2024-01-01'))",
		"date('2024-01-01') - date('2023-01-01')", "date({year: 2024, moth: 1})",
	} {
		t.Run(query, func(t *testing.T) {
			var wrong *graph.QueryError
			if _, err := g.Cypher(t.Context(), "RETURN "+query+" AS x", nil); !errors.As(err, &wrong) {
				t.Errorf("%s: %v", query, err)
			}
		})
	}
}

// TestZonesOfTime uses names of time zones whose offsets the host provides.
func TestZonesOfTime(t *testing.T) {
	g := open(t, graph.Config{})
	const paris = "datetime('2024-03-30T12:00[Europe/Paris]')"
	for _, c := range []struct{ query, want string }{
		{paris, "2024-03-30T12:00+01:00[Europe/Paris]"},
		{paris + " + duration('P1D')", "2024-03-31T12:00+02:00[Europe/Paris]"},
		{paris + " + duration('PT24H')", "2024-03-31T13:00+02:00[Europe/Paris]"},
		{paris + ".timezone", "Europe/Paris"},
		{paris + ".offset", "+01:00"},
		{"datetime('2024-03-31T02:30[Europe/Paris]')", "2024-03-31T03:30+02:00[Europe/Paris]"},
		{"datetime('2024-07-01T12:00-04:00[Europe/Paris]')", "2024-07-01T18:00+02:00[Europe/Paris]"},
		{"datetime({datetime: " + paris + ", timezone: 'Asia/Tokyo'})", "2024-03-30T20:00+09:00[Asia/Tokyo]"},
		{"datetime({datetime: " + paris + ", month: 7})", "2024-07-30T12:00+02:00[Europe/Paris]"},
		{"datetime({epochSeconds: 0, timezone: 'America/New_York'})", "1969-12-31T19:00-05:00[America/New_York]"},
		{"datetime.truncate('year', " + paris + ")", "2024-01-01T00:00+01:00[Europe/Paris]"},
		{"duration.between(" + paris + ", localdatetime('2024-03-31T12'))", "PT23H"},
		{"time(" + paris + ")", "12:00+01:00"},
		{paris + " = datetime('2024-03-30T12:00+01:00')", "true"},
		{"date.realtime('Asia/Tokyo') >= date.realtime('Pacific/Honolulu')", "true"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.query), func(t *testing.T) {
			expect(t, rows(t, g, "RETURN "+c.query+" AS x", nil), "[x] [map[x:"+c.want+"]]")
		})
	}
	var wrong *graph.QueryError
	_, err := g.Cypher(t.Context(), "RETURN datetime('2024-01-01T00:00[Mars/Base]')", nil)
	if !errors.As(err, &wrong) || !strings.Contains(wrong.Message, "Mars/Base") {
		t.Errorf("%v", err)
	}
}

// TestStoredDates writes dates, which only the engine's library can do, and reads them.
func TestStoredDates(t *testing.T) {
	g := open(t, graph.Config{})
	err := g.Update(t.Context(), func(u *graph.Update) error {
		_, err := u.Cypher("CREATE (:V {id: 'v', at: datetime($t), day: date({year: 2024, month: 2}), "+
			"for: duration({hours: 1.5}), text: 'date(1)'})", map[string]any{"t": "2024-03-01T10:00:00.5+02:00"})
		if err != nil {
			return err
		}
		read, err := u.Cypher("MATCH (v:V) RETURN v.at.offset AS o, v.day.month AS m", nil)
		if err == nil {
			expect(t, fmt.Sprint(read.Rows), "[map[m:2 o:+02:00]]")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, rows(t, g, "MATCH (v:V) WHERE v.at > datetime('2024-03-01T07:59Z') RETURN v.at AS at, "+
		"v.day + v.for AS day, v.for AS for, v.text AS text", nil),
		"[at day for text] [map[at:2024-03-01T10:00:00.5+02:00 day:2024-02-01 for:PT1H30M text:date(1)]]")
	expect(t, rows(t, g, "MATCH (v:V) RETURN v", nil),
		"[v] [map[v:map[at:2024-03-01T10:00:00.5+02:00 day:2024-02-01 for:PT1H30M id:v labels:[V] text:date(1)]]]")
}

func TestParametersAreValues(t *testing.T) {
	g := open(t, graph.Config{})
	params := map[string]any{"list": []any{1, "a", []any{nil}}, "map": map[string]any{"k": map[string]any{"x": 1.5}}}
	expect(t, rows(t, g, "RETURN $list AS l, $map AS m, $map.k.x AS x, size($list) AS n", params),
		"[l m x n] [map[l:[1 a [<nil>]] m:map[k:map[x:1.5]] n:3 x:1.5]]")
	if _, err := g.Cypher(t.Context(), "RETURN $none", nil); err == nil || !strings.Contains(err.Error(), "$none") {
		t.Errorf("a missing parameter: %v", err)
	}
}

func TestRegularExpressions(t *testing.T) {
	g := open(t, graph.Config{})
	expect(t, rows(t, g, "UNWIND ['abc', 'ab', 'xabc', null] AS s RETURN s =~ 'a.*c|ab' AS x", nil),
		"[x] [map[x:true] map[x:true] map[x:false] map[x:<nil>]]")
	for _, pattern := range []string{"a)|(b", "[", "(?:a{1000}){1000}"} {
		t.Run(pattern, func(t *testing.T) {
			var wrong *graph.QueryError
			_, err := g.Cypher(t.Context(), "RETURN 'a' =~ $p AS x", map[string]any{"p": pattern})
			if !errors.As(err, &wrong) {
				t.Errorf("%s: %v", pattern, err)
			}
		})
	}
}

func TestTypesAreChecked(t *testing.T) {
	g := open(t, graph.Config{})
	if err := g.Update(t.Context(), traces); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"RETURN 1 AND true", "RETURN NOT 'a'", "RETURN 1 + true", "RETURN 1 / 0", "RETURN [1][true]",
		"RETURN 9223372036854775807 + 1", "MATCH (n) WHERE n.id RETURN n", "RETURN x", "RETURN $missing",
		"MATCH (n) RETURN sum(n)", "RETURN count(count(1))", "UNWIND 1 AS x RETURN x", "RETURN 1 LIMIT -1",
		"MATCH (n) WITH n.id RETURN 1", "RETURN 1 AS a, 2 AS a", "RETURN 1 AS a UNION RETURN 2 AS b",
		"RETURN labels('x')", "RETURN range(1, 2, 0)", "RETURN size(1)", "RETURN {a: 1}[0]",
	} {
		t.Run(query, func(t *testing.T) {
			var wrong *graph.QueryError
			if rows, err := g.Cypher(t.Context(), query, nil); !errors.As(err, &wrong) {
				t.Errorf("%s: %+v, %v", query, rows, err)
			}
		})
	}
}

func TestUnknownNamesAreNamed(t *testing.T) {
	g := open(t, graph.Config{})
	for query, want := range map[string]string{
		"RETURN toUppr('a') AS x":          "there is no function touppr: is toupper meant?",
		"RETURN lengt([1]) AS x":           "there is no function lengt: is length meant?",
		"RETURN frobnicate(1) AS x":        "there is no function frobnicate",
		"RETURN toUpper('a', 'b') AS x":    "the function toupper does not take 2 arguments",
		"RETURN date.truncate('day') AS x": "there is no function date_truncate",
		"CALL db.labels()":                 "there are no procedures here: query the graph itself",
	} {
		t.Run(query, func(t *testing.T) {
			var wrong *graph.QueryError
			if _, err := g.Cypher(t.Context(), query, nil); !errors.As(err, &wrong) || wrong.Message != want {
				t.Errorf("%s: %v", query, err)
			}
		})
	}

	err := g.Update(t.Context(), func(u *graph.Update) error {
		if _, err := u.Cypher("CREATE (:N {id: 'n', name: toUpper('a')}) RETURN count(*)", nil); err != nil {
			return err
		}
		_, err := u.Cypher("MATCH (n:N) SET n.name = toUppr('b')", nil)
		return err
	})
	wantError(t, err, "there is no function touppr: is toupper meant?")

	var wrong *graph.QueryError
	for _, query := range []string{
		"SELECT ?x { ?x a <http://x:80/y> ; au:p 'a:b' . ?x a ex:Y }",
		"SELECT ?x { ?x a au:Y ; ex:p 1 }",
		"PREFIX e: <http://e/> SELECT ?x { ?x a e:Y ; ?p \"\"\"ey:\\\"y: \"\"\" # ez:z\n, ?z ; ex:p _:b }",
		"PREFIX e: <http://e/> ASK { ?x e:a:b 1 . FILTER(?x<1 && 2>?x) ?x ex:Y }",
	} {
		t.Run(fmt.Sprintf("%.60s", query), func(t *testing.T) {
			_, err = g.SPARQL(t.Context(), query)
			if !errors.As(err, &wrong) || wrong.Message != "the prefix ex: is not declared: add PREFIX ex: <…>" {
				t.Errorf("%s: %v", query, err)
			}
		})
	}
	_, err = g.SPARQL(t.Context(), "SELECT ?x { ?x a }")
	if !errors.As(err, &wrong) || strings.Contains(wrong.Message, "..=") {
		t.Errorf("%v", err)
	}
}

func TestControlCharactersAreNoXML(t *testing.T) {
	g := open(t, graph.Config{})
	load(t, g, `@prefix au: <`+graph.Namespace+`> . au:x au:name "a\u0007b" .`)
	var wrong *graph.QueryError
	_, err := g.Dump(t.Context(), io.Discard, "rdfxml")
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), "U+0007") {
		t.Errorf("%v", err)
	}
	if _, err := g.SPARQL(t.Context(), "INSERT DATA { au:y a au:Z }"); !errors.Is(err, graph.ErrReadOnly) {
		t.Errorf("an update: %v", err)
	}
}

// TestLoadedEdgesAreThoseOfTheLibrary runs queries of all kinds in succession: some read the edges
// as they were loaded, others need the library's, and some change them.
func TestLoadedEdgesAreThoseOfTheLibrary(t *testing.T) {
	const edges = "MATCH (x)-[e:NEXT]->(y) RETURN x.n, e.w, y.n ORDER BY x.n"
	build := func() *graph.Graph {
		g := open(t, graph.Config{})
		if err := g.Update(t.Context(), func(u *graph.Update) error {
			for i := range 4 {
				node := graph.Node{ID: fmt.Sprint(i), Labels: []string{"N"}, Properties: map[string]any{"n": i}}
				if err := u.AddNode(node); err != nil {
					return err
				}
			}
			for i := range 3 {
				edge := graph.Edge{
					Type: "NEXT", From: fmt.Sprint(i), To: fmt.Sprint(i + 1),
					Properties: map[string]any{"w": i * 10},
				}
				if err := u.AddEdge(edge); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return g
	}
	change := func(g *graph.Graph, query string) {
		if err := g.Update(t.Context(), func(u *graph.Update) error {
			_, err := u.Cypher(query, nil)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	paths := "MATCH (a {n: 0}), (b {n: 3}), p = shortestPath((a)-[:NEXT*]->(b)) RETURN length(p)"

	reads, library := build(), build()
	before := rows(t, reads, edges, nil)
	if got := rows(t, library, paths, nil); !strings.Contains(got, "3") {
		t.Errorf("a path: %s", got)
	}
	if got := rows(t, library, edges, nil); got != before || strings.Count(got, "x.n:") != 3 {
		t.Errorf("after the library has the edges: %s, before: %s", got, before)
	}
	if got := rows(t, reads, paths, nil); !strings.Contains(got, "3") {
		t.Errorf("a path after a query that reads: %s", got)
	}

	for name, g := range map[string]*graph.Graph{"reads": reads, "library": library, "nothing": build()} {
		t.Run(name, func(t *testing.T) {
			change(g, "MATCH (x {n: 3}), (y {n: 0}) CREATE (x)-[:NEXT {w: 30}]->(y)")
			change(g, "MATCH ({n: 0})-[e:NEXT]->() SET e.w = 5")
			change(g, "MATCH ({n: 1})-[e:NEXT]->() DELETE e")
			got := rows(t, g, edges, nil)
			const want = "map[e.w:5 x.n:0 y.n:1] map[e.w:20 x.n:2 y.n:3] map[e.w:30 x.n:3 y.n:0]"
			if !strings.Contains(got, want) || strings.Count(got, "x.n:") != 3 {
				t.Errorf("after %s, the edges are %s", name, got)
			}
		})
	}
}
