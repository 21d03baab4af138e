package tablesql

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tables"
)

func TestKindsOfNumbers(t *testing.T) {
	for value, want := range map[string]valueKind{
		"": kindNull, "  ": kindNull,
		"0": kindInteger, "-7": kindInteger, "+5": kindInteger, " 12 ": kindInteger,
		"123456789012345678": kindInteger, "9223372036854775807": kindInteger,
		"-9223372036854775808": kindInteger, "9223372036854775808": kindBig,
		"-9223372036854775809": kindBig, "18446744073709551615": kindBig,
		".5": kindReal, "-.5": kindReal, "5.": kindReal, "1e5": kindReal, "1E-05": kindReal,
		"2e+16": kindReal, "0.30000000000000004": kindReal, "1.5e3": kindReal, "0.5": kindReal,
		"007": kindText, "00.5": kindText, "1e999": kindText, "1e-999": kindText, "1e": kindText,
		"e5": kindText, ".": kindText, "-": kindText, "+": kindText, "1_000": kindText,
		"0x10": kindText, "1,5": kindText, "1 2": kindText, "nan": kindText, "inf": kindText,
		strings.Repeat("9", 65): kindText,
	} {
		t.Run(value, func(t *testing.T) {
			if got := kindOf([]byte(value)); got != want {
				t.Errorf("%q is %v; want %v", value, got, want)
			}
		})
	}
}

// TestNumbersAsFilesHaveThem queries values that other readers treat as text.
func TestNumbersAsFilesHaveThem(t *testing.T) {
	all := open(t, DefaultLimits(), map[string]string{
		"e.csv":     "p\n1e-05\n0.25\n3.0\n2e+16\n",
		"signs.csv": "p,q\n+5,.5\n -3 ,5.\n11,-.5\n",
		"long.csv":  "p\n0.30000000000000004\n10.0\n9.0\n",
		"big.csv":   "id,n\n18446744073709551003,1\n18446744073709551004,2\n9223372036854775808,3\n5,4\n",
		"u.jsonl": `{"id":18446744073709551003,"n":1}` + "\n" +
			`{"id":18446744073709551004,"n":2}` + "\n" + `{"id":7,"n":3}` + "\n",
		"phones.csv": "tel\n+4930123456\n+4930123457\n",
		"wide.csv":   "a,b\n1,2\n3,4,5\n",
	})
	for query, want := range map[string]string{
		"select max(p) m, min(p) l from e":                             `[{"m":2e+16,"l":0.00001}]`,
		"select count(*) n from e where p > 2":                         `[{"n":2}]`,
		"select max(p) m, sum(p) s, max(q) q from signs":               `[{"m":11,"s":13,"q":5.0}]`,
		"select max(p) m from long where p > 9.5":                      `[{"m":10.0}]`,
		"select n from big where id = 18446744073709551003":            `[{"n":1}]`,
		"select n from big where id > 9223372036854775808 order by id": `[{"n":1},{"n":2}]`,
		"select n from big where id < 6":                               `[{"n":4}]`,
		"select max(id) m, count(distinct id) d from big":              `[{"m":18446744073709551004,"d":4}]`,
		"select sum(id) s from big":                                    `[{"s":46116860184273877820}]`,
		"select id from big order by id limit 2":                       `[{"id":5},{"id":9223372036854775808}]`,
		"select id from big order by id limit 2 offset 2": `[{"id":18446744073709551003},` +
			`{"id":18446744073709551004}]`,
		"select n from u where id in (18446744073709551004, 7) order by n":  `[{"n":2},{"n":3}]`,
		"select id, count(*) n from u group by id order by id desc limit 1": `[{"id":18446744073709551004,"n":1}]`,
		"select tel from phones limit 1":                                    `[{"tel":"+4930123456"}]`,
		"select sum(column_3) s from wide":                                  `[{"s":5}]`,
	} {
		t.Run(query, func(t *testing.T) {
			if rows, err := all.Query(t.Context(), query, nil); err != nil || string(rows) != want {
				t.Errorf("got %s, %v; want %s", rows, err, want)
			}
		})
	}

	const query = "select n from u where id = ?"
	rows, err := all.Query(t.Context(), query, json.RawMessage(`[18446744073709551004]`))
	if err != nil || string(rows) != `[{"n":2}]` {
		t.Errorf("with a parameter: %s, %v", rows, err)
	}
}

// TestNearlyNumbersAreNotComparedAsTexts checks that comparing such values is refused.
func TestNearlyNumbersAreNotComparedAsTexts(t *testing.T) {
	all := open(t, DefaultLimits(), map[string]string{
		"na.csv":    "k,p\na,10.0\nb,NA\nc,9.0\n",
		"late.csv":  "k,p\n" + strings.Repeat("r,9\n", sampleRows) + "s,NA\nt,11\n",
		"local.csv": "k,p\na,\"1,234.50\"\nb,999.00\n",
		"codes.csv": "z\n007\n100\n50\n",
		"big.csv":   "id\n18446744073709551003\n2\n",
		"j.jsonl":   "{\"p\": 9}\n{\"p\": \"n/a\"}\n{\"p\": 10}\n",
	})
	for query, says := range map[string]string{
		"select max(p) from na":                    `"NA"`,
		"select k from na where p > 9.5":           `"NA"`,
		"select k from na where 9.5 < na.p":        `"NA"`,
		"select k from na where p between 1 and 9": `"NA"`,
		"select k from na order by p desc limit 1": `"NA"`,
		"select p * 2 from na":                     `"NA"`,
		"select avg(cast(p as real)) from na":      `"NA"`,
		"select max(p) from late":                  `"NA"`,
		"select max(p) from local":                 "thousands=,",
		"select k from local where p > 1000":       "thousands=,",
		"select sum(cast(p as real)) from local":   "thousands=,",
		"select z from codes where z > 50":         "CAST(z AS INTEGER)",
		"select z from codes where z = 7":          "CAST(z AS INTEGER)",
		"select max(z) from codes":                 "CAST(z AS INTEGER)",
		"select id + 1 from big":                   "64 bits",
		"select cast(id as integer) from big":      "64 bits",
		"select max(p) from j":                     `"n/a"`,
	} {
		t.Run(query, func(t *testing.T) {
			if rows, err := all.Query(t.Context(), query, nil); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got %s, %v; want %s", rows, err, says)
			}
		})
	}
	for query, want := range map[string]string{
		"select max(nullif(p, 'NA')) m from na":                      `[{"m":10.0}]`,
		"select max(p) m from na where p <> 'NA'":                    `[{"m":10.0}]`,
		"select max(p) m from na where typeof(p) <> 'text'":          `[{"m":10.0}]`,
		"select max(p) m from late where p <> 'NA'":                  `[{"m":11}]`,
		"select max(cast(replace(p, ',', '') as real)) m from local": `[{"m":1234.5}]`,
		"select z from codes where z = '007'":                        `[{"z":"007"}]`,
		"select z from codes where cast(z as integer) > 50":          `[{"z":"100"}]`,
		"select k, p from na where k = 'b'":                          `[{"k":"b","p":"NA"}]`,
	} {
		t.Run(query, func(t *testing.T) {
			if rows, err := all.Query(t.Context(), query, nil); err != nil || string(rows) != want {
				t.Errorf("got %s, %v; want %s", rows, err, want)
			}
		})
	}
}

// TestTextsAreNotComparedWithNumbers checks that a query fails or has a note if SQLite would
// compare both as text.
func TestTextsAreNotComparedWithNumbers(t *testing.T) {
	all := open(t, DefaultLimits(), map[string]string{
		"days.csv":  "d,n\n2024-01-02,1\n2023-12-31,20\n",
		"other.csv": "d,k\n3,1\n30,20\n",
		"empty.csv": "e,n\n,1\n,2\n",
	})
	const fails, noted = "fails", "noted"
	for query, want := range map[string]string{
		"select count(*) n from days where d > 5":                               fails,
		"select count(*) n from days where 5 <= days.d":                         fails,
		"select count(*) n from days where \"d\" < -5":                          fails,
		"select count(*) n from days where d between 1 and 9":                   fails,
		"select count(*) n from days where d not between 1 and 9":               fails,
		"select count(*) n from days where d > 2024-01-01":                      fails,
		"select max(d) as d from days having d > 5":                             fails,
		"select days.n n from days, other o where o.k = n and days.d > o.d":     "",
		"select days.d d, o.d e from days join other o on o.k = n where e > 5":  "",
		"select days.d d from days join other o on o.k = n where o.d > 5":       noted,
		"select count(*) n from days where d > '2024'":                          "",
		"select count(*) n from days where n > 5":                               "",
		"select count(*) n from days where 5 < n and d > '2024'":                "",
		"select count(*) n from days where length(d) > 5":                       "",
		"select count(*) n from days where cast(substr(d, 1, 4) as int) > 2023": "",
		"select count(*) n from days where d || '' > '5'":                       "",
		"select count(*) n from days where '5' < substr(d, 1, 4)":               "",
		"select count(*) n from empty where e > 5":                              "",
	} {
		t.Run(query, func(t *testing.T) {
			got := ""
			ctx := WithNotes(t.Context(), func(string, ...any) { got = noted })
			rows, err := all.Query(ctx, query, nil)
			if err != nil {
				got = fails
			}
			if got != want || err != nil && !strings.Contains(err.Error(), `such as "2024-01-02"`) {
				t.Errorf("%s, %v: got %q; want %q", rows, err, got, want)
			}
		})
	}
}

func TestValuesAreReadAsTheOptionsSay(t *testing.T) {
	for name, c := range map[string]struct{ text, query, want string }{
		"decimal=,": {
			"p;q\n1,5;x\n10,5;y\n", "select max(p) m, sum(p) s from context", `[{"m":10.5,"s":12.0}]`,
		},
		"thousands=,": {"p;q\n1,234.5;x\n999;y\n", "select max(p) m from context", `[{"m":1234.5}]`},
		"nullstr=NA": {
			"p;q\n9;NA\nNA;y\n10;z\n", "select max(p) m, count(q) n from context", `[{"m":10,"n":2}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var o tables.Options
			option, value, _ := strings.Cut(name, "=")
			if err := o.Set(option, value); err != nil {
				t.Fatal(err)
			}
			text := bigtext.FromBytes("a.csv", []byte(c.text))
			text.MarkCSV(o)
			all := New([]Source{{Names: []string{"context"}, Text: text}}, DefaultLimits())
			if rows, err := all.Query(t.Context(), c.query, nil); err != nil || string(rows) != c.want {
				t.Errorf("got %s, %v; want %s", rows, err, c.want)
			}
		})
	}
}
