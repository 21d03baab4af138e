package tablesql

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tables"
)

// tablesPython names a Python with the packages of scripts/tables/requirements.txt.
const tablesPython = "RLM_TABLES_PYTHON"

// rowsOf returns a CSV text with a header and n rows.
func rowsOf(header string, n int, row func(i int) string) string {
	var b strings.Builder
	b.WriteString(header + "\n")
	for i := range n {
		b.WriteString(row(i) + "\n")
	}
	return b.String()
}

// messyFiles returns CSV files like those that people have. Queries use the columns k and p, except
// in files without a header.
func messyFiles() map[string]string {
	with := func(p ...string) string {
		return rowsOf("k,p", 30, func(i int) string { return fmt.Sprintf("r%d,%s", i%3, p[i%len(p)]) })
	}
	plain := with("10", "9", "2.5")
	files := map[string]string{
		"plain":      plain,
		"integers":   with("7", "11", "-3"),
		"exponents":  with("1e-05", "0.25", "3.0", "2e+16"),
		"digits":     with("0.30000000000000004", "10.0", "9.0"),
		"points":     with(".5", "5.", "-.25", "10"),
		"plus":       with("+5", "-7", "11"),
		"spaces":     with(" 5", "7 ", "11"),
		"int64":      with("9223372036854775807", "-9223372036854775808", "5"),
		"large":      with("18446744073709551615", "9223372036854775808", "5"),
		"NA":         with("10.0", "NA", "9.0"),
		"missing":    with("10", "", "9"),
		"dashes":     with("10", "-", "9"),
		"thousands":  with(`"1,234.50"`, `"2,345.75"`, "999.00"),
		"commas":     strings.ReplaceAll(strings.ReplaceAll(with("10;5", "9;5"), ",", "|"), ";", ","),
		"currency":   with("$5.00", "$10.00"),
		"percent":    with("5%", "10%"),
		"codes":      with("007", "100", "050"),
		"uneven":     with("007", "100", "50"),
		"dates":      with("2024-01-02", "2023-12-31"),
		"mixed":      with("10", "9", "x7", "y8"),
		"quoted":     with(`"10"`, `"9"`, `"2"`),
		"huge":       with("1e999", "5", "7"),
		"crlf":       strings.ReplaceAll(plain, "\n", "\r\n"),
		"cr":         strings.ReplaceAll(plain, "\n", "\r"),
		"mark":       "\ufeff" + plain,
		"semicolons": strings.ReplaceAll(plain, ",", ";"),
		"tabs":       strings.ReplaceAll(plain, ",", "\t"),
		"preamble":   "Report of May\n\n" + plain,
		"comments":   "# made by us\n" + plain,
		"long rows":  plain + "r1,5,9\n",
		"words":      with("new", "used", "x"),
		"truths":     with("true", "false", "true"),
		"empty":      with("new", "", "used"),
	}
	late := rowsOf("k,p", sampleRows+100, func(i int) string { return fmt.Sprintf("r%d,%d", i%3, i%7) })
	files["late"] = late + "r1,NA\nr2,11\n"
	return files
}

// The test runs these queries on each file.
const (
	chooses = "select count(*) n, max(p) m, min(p) l from t where p > 2"
	groups  = "select k, sum(p) s, count(distinct p) d from t group by k order by k"
	adds    = "select distinct p + 1 s from t order by 1"
	exceeds = "select count(*) n from t where p > 'new'"
)

// differing contains the queries that DuckDB refuses and rlm answers, with the right answers:
// pandas reads +5 and 007 as numbers, and NA as missing. A column of true and false contains text
// in CSV.
var differing = map[[2]string][][]any{
	{"plus", chooses}:   {{20.0, 11.0, 5.0}},
	{"plus", groups}:    {{"r0", 50.0, 1.0}, {"r1", -70.0, 1.0}, {"r2", 110.0, 1.0}},
	{"codes", groups}:   {{"r0", 70.0, 1.0}, {"r1", 1000.0, 1.0}, {"r2", 500.0, 1.0}},
	{"uneven", groups}:  {{"r0", 70.0, 1.0}, {"r1", 1000.0, 1.0}, {"r2", 500.0, 1.0}},
	{"codes", adds}:     {{8.0}, {51.0}, {101.0}},
	{"uneven", adds}:    {{8.0}, {51.0}, {101.0}},
	{"truths", exceeds}: {{20.0}},
	{"NA", "select count(*) n from t where p = 7"}: {{0.0}},
}

// kindQueries contains queries that compare or compute with both numbers and text. Each query runs
// on all files in its list.
var kindQueries = []struct {
	files   []string
	queries []string
}{
	{[]string{"plain", "integers", "spaces", "missing"}, []string{
		"select count(*) n from t where p > '9'",
		"select count(*) n from t where p between '5' and '10'",
		"select count(*) n from t where p in ('10', '7')",
		"select k from t group by k having sum(p) > '1' order by k",
		"select count(*) n from t where p * 2 > '9'",
		"select count(*) n from t where p = 'ten'",
		"select count(*) n from t where p > 'ten'",
		"select count(*) n from t where coalesce(p, '0') > 5",
		"select max(coalesce(p, 'none')) m from t",
		"select case p when '10' then 'a' else 'b' end c, count(*) n from t group by 1 order by 1",
		"select sum(p + 'x') s from t",
		"select count(*) n from t where k > p",
		"select count(*) n from t where p < k",
		"select max(p) > '9' m from t having max(p) > '9'",
		"select count(*) n from t where length(k) = '2'",
	}},
	{[]string{"dates"}, []string{
		"select count(*) n from t where p > '2024-01-01'",
		"select count(*) n from t where p = '2024-01-02'",
		"select count(*) n from t where p = 2024",
		"select count(*) n from t where p between 20230101 and 20241231",
		"select count(*) n from t where strftime('%Y', p) = 2024",
		"select y, count(*) n from (select strftime('%Y', p) as y from t) group by y having y > 2023",
		"select count(*) n from t where p in (2024, 2023)",
		"select p + 1 d from t",
		"select max(p) - min(p) d from t",
		"select count(*) n from t where p > 2024-01-01",
		"select min(p) a, max(p) b from t",
	}},
	{[]string{"words", "empty", "truths"}, []string{
		"select count(*) n from t where p = 5",
		"select count(*) n from t where p > 5",
		adds,
		"select k + p s from t",
		"select abs(p) a from t",
		"select count(*) n from t where p = true",
		"select count(*) n from t where p",
		"select count(*) n from t where not p",
		"select count(p) n from t",
		"select count(*) n from t where p is null",
		"select coalesce(p, 'none') c, count(*) n from t group by 1 order by 1",
		exceeds,
		"select max(p) m from t",
	}},
	{[]string{"codes", "uneven", "currency", "NA"}, []string{
		"select count(*) n from t where p > '050'",
		"select count(*) n from t where p = 7",
		groups,
		"select count(*) n from t where p = 'NA'",
		adds,
	}},
	{[]string{"plain", "integers", "missing"}, []string{
		"select distinct p / 2 q from t where p is not null order by 1",
		"select distinct p / 4.0 q from t where p is not null order by 1",
		"select distinct p % 2 r from t where p > 0 order by 1",
		"select sum(p) / count(*) a from t",
		"select k, sum(p) * 100 / count(p) a from t group by k order by k",
		"select count(*) n from t where p <> 'ten'",
		"select count(*) n from t where p not in ('ten', '9')",
	}},
	{[]string{"plain", "missing", "words", "dates", "codes", "currency", "NA", "spaces", "empty", "quoted"}, []string{
		"select distinct cast(p as integer) i from t where p is not null order by 1",
		"select sum(cast(p as real)) s from t",
		"select distinct cast(p as decimal(10, 0)) i from t where p is not null order by 1",
		"select min(cast(p as date)) d from t",
	}},
	{[]string{"words", "empty"}, []string{
		"select count(*) n from t where k like 'R%'",
		"select count(*) n from t where k ilike 'R%'",
		"select count(*) n from t where k like 'r%' and p like '%e%'",
		"select count(*) n from t where p not like 'n%'",
		"select count(*) n from t where p <> 'new'",
		"select count(*) n from t where p not in ('new', 'used')",
		"select count(*) n from t where p <> 5",
	}},
	{[]string{"missing", "empty", "dates", "NA"}, []string{
		"select p from t order by p limit 1",
		"select p from t order by p desc limit 1",
		"select p from t order by p nulls last limit 1",
		"select k, min(p) m from t group by k order by m, k",
		"select k, row_number() over (order by p, k) i from t order by i limit 2",
		"select p + 1 x from t order by x limit 1",
	}},
	{[]string{"words", "spaces", "codes", "uneven", "digits", "empty"}, []string{
		"select p, count(*) n from t group by p order by p desc",
		"select count(distinct p) d from t",
		"select count(*) n from t a join t b using (p)",
	}},
}

// TestAnswersAreThoseOfDuckDB runs queries on each messy file and checks that the answer is equal,
// or the query fails, or a note describes the difference.
func TestAnswersAreThoseOfDuckDB(t *testing.T) {
	python := os.Getenv(tablesPython)
	if python == "" {
		t.Skip(tablesPython + " names no Python with DuckDB: make tables-native sets it")
	}

	dir, files := t.TempDir(), messyFiles()
	var asked [][2]string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name+".csv"), []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		asked = append(asked,
			[2]string{name + ".csv", chooses},
			[2]string{name + ".csv", groups})
	}
	for _, group := range kindQueries {
		for _, name := range group.files {
			for _, query := range group.queries {
				asked = append(asked, [2]string{name + ".csv", query})
			}
		}
	}
	queries, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "queries.json"), queries, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, "../../../scripts/tables/judge.py", dir)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var judged [][][]any
	if err := json.Unmarshal(out, &judged); err != nil {
		t.Fatal(err)
	}

	counts := map[string]int{}
	for i, one := range asked {
		name := strings.TrimSuffix(one[0], ".csv")
		rows, told, err := askMessy(t, files[name], one[1])
		switch {
		case err != nil:
			counts["refused"]++
		case judged[i] != nil && slices.EqualFunc(rows, judged[i], areSameRows):
			counts["equal"]++
		case told != "":
			counts["told"]++
		case judged[i] == nil && slices.EqualFunc(rows, differing[[2]string{name, one[1]}], areSameRows):
			counts["known to differ"]++
		default:
			t.Errorf("%s: %s: got %v; DuckDB has %v", name, one[1], rows, judged[i])
		}
	}
	t.Logf("%d queries: %v", len(asked), counts)
}

// askMessy returns the rows of a query, and its notes.
func askMessy(t *testing.T, text, query string) (rows [][]any, told string, err error) {
	t.Helper()
	layout, err := tables.FindLayout([]byte(text), 0, tables.Options{})
	if err != nil {
		return nil, "", err
	}
	told = strings.Join(layout.Notes, "; ")
	ctx := WithNotes(t.Context(), func(format string, args ...any) { told += fmt.Sprintf(format, args...) })
	source := Source{Names: []string{"t"}, Text: bigtext.FromBytes("t.csv", []byte(text))}
	out, err := New([]Source{source}, DefaultLimits()).Query(ctx, query, nil)
	if err != nil {
		return nil, told, err
	}

	decoder := json.NewDecoder(bytes.NewReader(out))
	for row := []any(nil); ; {
		token, err := decoder.Token()
		if err != nil {
			return rows, told, nil //nolint:nilerr // the end
		}
		switch token {
		case json.Delim('{'):
			row = nil
		case json.Delim('}'):
			rows = append(rows, row)
		case json.Delim('['), json.Delim(']'):
		default: // a key, whose value follows
			var value any
			if err := decoder.Decode(&value); err != nil {
				return nil, told, err
			}
			row = append(row, value)
		}
	}
}

func areSameRows(a, b []any) bool { return slices.EqualFunc(a, b, areSame) }

// areSame compares values. A missing string may be empty, true may be a string, and a float may
// have lost its last digits.
func areSame(a, b any) bool {
	if truth, isTruth := b.(bool); isTruth {
		return a == fmt.Sprint(truth)
	}
	x, isX := a.(float64)
	y, isY := b.(float64)
	if isX && isY {
		return x == y || math.Abs(x-y) <= 1e-12*max(math.Abs(x), math.Abs(y))
	}
	return a == b || a == nil && b == "" || a == "" && b == nil
}
