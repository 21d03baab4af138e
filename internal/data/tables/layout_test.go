package tables

import (
	"bytes"
	"strings"
	"testing"
)

// readAll returns the names of the columns, and the rows that follow, as one string.
func readAll(t *testing.T, text string, o Options) (table string, notes []string) {
	t.Helper()
	l, err := FindLayout([]byte(text), 0, o)
	if err != nil {
		return err.Error(), nil
	}

	lines := []string{string(bytes.Join(l.Columns, []byte("|")))}
	rows := NewScanner(strings.NewReader(text), int64(len(text)), int64(l.First), l.Line, l.Dialect)
	for {
		fields, err := rows.NextFields()
		if err != nil {
			break
		}
		lines = append(lines, string(bytes.Join(fields, []byte("|"))))
	}
	return strings.Join(lines, "\n"), l.Notes
}

func TestLayoutsOfFilesAsPeopleHaveThem(t *testing.T) {
	for name, c := range map[string]struct {
		text, options, table, note string
	}{
		"a line for Excel": {text: "sep=;\r\na;b\r\n1,5;2\r\n", table: "a|b\n1,5|2"},
		"a quoted line":    {text: "\"sep=|\"\na|b\n1|2\n", table: "a|b\n1|2"},
		"a preamble": {
			text:  "Report of May, all\n\nid;n\n1;2\n3;4\n",
			table: "id|n\n1|2\n3|4",
			note:  "begins in line 3",
		},
		"a preamble with commas": {
			text:  "Report, May\nby us, all\n\nid,n,x\n1,2,c\n3,4,d\n",
			table: "id|n|x\n1|2|c\n3|4|d",
			note:  "skip=3",
		},
		"comments": {
			text:  "# made, by, us\n#\na,b\n1,2\n# more\n3,4\n",
			table: "a|b\n1|2\n3|4",
			note:  "comment=#",
		},
		"a header with #": {text: "#id,name\n1,x\n2,y\n", table: "#id|name\n1|x\n2|y"},
		"spaces before quotes": {
			text:  "a, b\n1, \"x, y\"\n2, \"z\" \n",
			table: "a|b\n1|x, y\n2|z",
			note:  "spaces",
		},
		"spaces everywhere": {text: "a, b\n1, x\n2, y\n", table: "a|b\n1|x\n2|y", note: "spaces"},
		"some spaces":       {text: "a,b\n1, x\n2,y\n", table: "a|b\n1| x\n2|y"},
		"backslashes": {
			text:  "a,b\n\"he \\\"x\\\", ok\",1\n\"\\n\",2\n",
			table: "a|b\nhe \"x\", ok|1\n\\n|2",
			note:  "backslash",
		},
		"a path at the end": {text: "a,b\n\"c:\\\",1\n\"d\",2\n", table: "a|b\nc:\\|1\nd|2"},
		"carriage returns":  {text: "a,b\r1,2\r3,4\r", table: "a|b\n1|2\n3|4"},
		"no header": {
			text:  "1,2.5,x\n2,3.5,y\n",
			table: "column_1|column_2|column_3\n1|2.5|x\n2|3.5|y",
			note:  "header=true",
		},
		"no header, but a date": {
			text:  "2024-01-02,x\n2024-01-03,y\n",
			table: "column_1|column_2\n2024-01-02|x\n2024-01-03|y",
			note:  "header=true",
		},
		"years": {
			text:  "country,2023,2024\nPeru,1,2\nChad,3,4\n",
			table: "country|2023|2024\nPeru|1|2\nChad|3|4",
			note:  "header=false",
		},
		"steps": {
			text:  "x,30,60,90\na,1,2,3\nb,4,5,6\n",
			table: "x|30|60|90\na|1|2|3\nb|4|5|6",
			note:  "header=false",
		},
		"names over numbers": {text: "x,1\n0.5,7\n1.5,8\n", table: "x|1\n0.5|7\n1.5|8"},
		"told: no header": {
			text:    "a,b\nc,d\n",
			options: "header=false",
			table:   "column_1|column_2\na|b\nc|d",
		},
		"told: a header":      {text: "1,2\n3,4\n", options: "header=true", table: "1|2\n3|4"},
		"told: lines to skip": {text: "x\ny,z\na,b\n1,2\n", options: "skip=2", table: "a|b\n1|2"},
		"told: a delimiter":   {text: "a:b\n1:2\n", options: "delim=:", table: "a|b\n1|2"},
		"told: a quote":       {text: "a,b\n'x,y',2\n", options: "quote='", table: "a|b\nx,y|2"},
		"told: an escape":     {text: "a,b\n\"x^\"y\",2\n", options: "escape=^", table: "a|b\nx\"y|2"},
		"told: a comment":     {text: "a,b\n%x\n1,2\n", options: "comment=%", table: "a|b\n1|2"},
		"longer rows": {
			text:  "a,b\n1,2\n3,4,5\n",
			table: "a|b\n1|2\n3|4|5",
			note:  "first in line 3",
		},
		"a comma at the end": {text: "a,b\n1,2,\n3,4,\n", table: "a|b\n1|2|\n3|4|"},
		"a name with NUL":    {text: "a\x00b,c\n1,2\n", table: "ab|c\n1|2"},
		"a torn value":       {text: "a,b\n\"x\"y,1\n", table: "a|b\nxy|1", note: "closing quote"},
	} {
		t.Run(name, func(t *testing.T) {
			var o Options
			if option, value, isGiven := strings.Cut(c.options, "="); isGiven {
				if err := o.Set(option, value); err != nil {
					t.Fatal(err)
				}
			}
			table, notes := readAll(t, c.text, o)
			if all := strings.Join(notes, "; "); table != c.table || !strings.Contains(all, c.note) ||
				c.note == "" && all != "" {
				t.Errorf("got %q, noted %q; want %q, noted %q", table, all, c.table, c.note)
			}
		})
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, c := range [][2]string{
		{"header", "maybe"},
		{"skip", "-1"},
		{"delim", "ab"},
		{"delim", "é"},
		{"delim", ""},
		{"colour", "red"},
		{"delim", "\""},
		{"decimal", "5"},
		{"thousands", "."},
		{"escape", "\n"},
		{"comment", " "},
		{"nullstr", strings.Repeat("x", maxNull+1)},
	} {
		t.Run(c[0]+"="+c[1][:min(len(c[1]), 5)], func(t *testing.T) {
			var o Options
			err := o.Set(c[0], c[1])
			if err == nil {
				err = o.Check()
			}
			if err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestIsCSV(t *testing.T) {
	for text, want := range map[string]bool{
		"stop_id,stop_name,lat\n0,\"A, B\",0.5\n1,C,1.5\n": true,
		"a\tb\tc\n1\t2\t3\n4\t5\t6\n":                      true,
		"a,b\n1,2\n3,4\n5,6\n7,8\n":                        true,
		"sep=;\na;b\n1;2\n":                                true,
		"a,b\n1,2\n":                                       false,
		"Ann, Bob, Cem\nAnn, Bob, Cem\nAnn, Bob, Cem\nDora, Eve, Fay\n": false,
		"2024-01-01 10:00:01,123 INFO a\n2024-01-01 10:00:02,124 INFO b\n2024-01-01 10:00:03,125 INFO c\n" +
			"2024-01-01 10:00:04,126 INFO d\n2024-01-01 10:00:05,127 INFO e\n": false,
		"Dear all,\nI came, I saw.\nYours,\nme\n":                                               false,
		"| a | b |\n| - | - |\n| 1 | 2 |\n":                                                     false,
		"One day, a fox, who was hungry, came to the edge of a forest\n, b, c, d\ne, f, g, h\n": false,
		"": false,
	} {
		t.Run(text[:min(len(text), 12)], func(t *testing.T) {
			if got := IsCSV([]byte(text), false); got != want {
				t.Errorf("%q: %v", text, got)
			}
		})
	}
}
