package documenttruth

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Reading is the content of a file as a snippet receives it.
type Reading struct {
	Type, Text string
	Parts      int
	Tables     map[string][]map[string]any
	Members    map[string]string
}

// Differences returns descriptions of what is lost, changed, doubled or moved in a reading.
func (k Known) Differences(got Reading) []string {
	var found []string
	add := func(format string, arguments ...any) { found = append(found, fmt.Sprintf(format, arguments...)) }

	if k.Parts > 0 && got.Parts != k.Parts {
		add("parts: %d, want %d", got.Parts, k.Parts)
	}
	if k.Whole != nil && got.Text != *k.Whole {
		add("text: %.60q, want %.60q", cutSame(got.Text, *k.Whole), cutSame(*k.Whole, got.Text))
	}
	if k.Members != nil && !maps.Equal(got.Members, k.Members) {
		add("members: %q, want %q", got.Members, k.Members)
	}

	found = append(found, compareBlocks(dropTitles(got.Text), k.Blocks)...)
	found = append(found, compareSheets(got.Text, k.Sheets)...)
	return append(found, compareTables(got.Tables, k.Tables)...)
}

var titlePattern = regexp.MustCompile(`(?m)^(## (Slide|Chapter|Message) \d+|Word document): .*$`)

// dropTitles removes the titles of parts and of the document, which repeat text of the parts.
func dropTitles(text string) string {
	_, text, _ = strings.Cut(text, "\n")
	return titlePattern.ReplaceAllString(text, "")
}

// cutSame cuts the beginning that two strings share, except for the last ten bytes of it.
func cutSame(text, other string) string {
	n := 0

	for n < len(text) && n < len(other) && text[n] == other[n] {
		n++
	}
	return text[max(0, n-10):]
}

var markPattern = regexp.MustCompile(`w\d{4}`)

// compareBlocks compares the order of all marks, then each text, row and table.
func compareBlocks(text string, blocks []Block) []string {
	if blocks == nil {
		return nil
	}
	found := compareMarks(text, blocks)
	plain := Plain(text)
	tables := ParseTables(text)
	rest := plain

	for _, block := range blocks {
		switch {
		case block.Optional:
		case block.Table != nil:
			if len(tables) == 0 {
				found = append(found, fmt.Sprintf("table: none, want %q", block.Table))
				continue
			}
			if !reflect.DeepEqual(tables[0], plainGrid(block.Table)) {
				found = append(found, fmt.Sprintf("table: %q, want %q", tables[0], plainGrid(block.Table)))
			}
			tables = tables[1:]
		case block.Row != nil:
			if !containsRow(plain, block.Row) {
				found = append(found, fmt.Sprintf("row: no %q", block.Row))
			}
		case block.Anywhere:
			if !strings.Contains(plain, Plain(block.Text)) {
				found = append(found, fmt.Sprintf("text: no %q", block.Text))
			}
		default:
			_, after, ok := strings.Cut(rest, Plain(block.Text))
			if !ok {
				found = append(found, fmt.Sprintf("text: no %q, behind the one before", block.Text))
				continue
			}
			rest = after
		}
	}

	if len(tables) > 0 {
		found = append(found, fmt.Sprintf("table: one too many, %q", tables[0]))
	}
	return found
}

// compareMarks compares the marks in a text with those of the blocks. No mark may be lost, doubled
// or moved.
func compareMarks(text string, blocks []Block) []string {
	var want []string
	free := map[string]bool{}

	for _, block := range blocks {
		words := block.Text + " " + strings.Join(block.Row, " ") + " " + block.Mark
		for _, row := range block.Table {
			words += " " + strings.Join(row, " ")
		}
		marks := markPattern.FindAllString(words, -1)
		for _, mark := range marks {
			if block.Anywhere || block.Optional {
				free[mark] = true
			}
		}
		if !block.Anywhere && !block.Optional {
			want = append(want, marks...)
		}
	}

	counts := map[string]int{}
	got := slices.DeleteFunc(markPattern.FindAllString(text, -1), func(mark string) bool {
		counts[mark]++
		return free[mark] && counts[mark] == 1
	})
	if slices.Equal(got, want) {
		return nil
	}

	var lost, moved []string
	for _, mark := range want {
		if counts[mark] == 0 {
			lost = append(lost, mark)
		}
	}
	for mark, n := range counts {
		if n > 1 {
			return []string{fmt.Sprintf("doubled: %s", mark)}
		}
		if !free[mark] && !slices.Contains(want, mark) {
			return []string{fmt.Sprintf("unknown: %s", mark)}
		}
	}

	if lost != nil {
		return []string{fmt.Sprintf("lost: %s", lost)}
	}
	for i := range want {
		if got[i] != want[i] {
			moved = append(moved, got[i])
		}
	}
	return []string{fmt.Sprintf("moved: %s", moved)}
}

// containsRow reports whether the cells of a row are adjacent in the text.
func containsRow(plain string, row []string) bool {
	var cells []string

	for _, cell := range row {
		if cell != "" {
			cells = append(cells, regexp.QuoteMeta(Plain(cell)))
		}
	}
	return regexp.MustCompile(strings.Join(cells, `[ |]*`)).MatchString(plain)
}

// compareSheets compares each sheet with the table below its title.
func compareSheets(text string, sheets []Grid) []string {
	var found []string

	for i, sheet := range sheets {
		title := fmt.Sprintf("## Sheet %d: %s", i+1, sheet.Name)
		if sheet.Hidden {
			title += " (hidden)"
		}
		_, rest, ok := strings.Cut(text, title+"\n")
		if !ok {
			found = append(found, fmt.Sprintf("title: no %q", title))
			continue
		}
		rest, _, _ = strings.Cut(rest, "\n## Sheet ")
		tables := ParseTables(rest)
		if len(tables) != 1 || !reflect.DeepEqual(tables[0], plainGrid(sheet.Grid)) {
			found = append(found, fmt.Sprintf("sheet: %q, want %q", tables, plainGrid(sheet.Grid)))
		}
	}
	return found
}

func compareTables(got, want map[string][]map[string]any) []string {
	var found []string

	for _, name := range slices.Sorted(maps.Keys(want)) {
		rows, ok := got[name]
		switch {
		case !ok:
			found = append(found, fmt.Sprintf("rows: no table %q", name))
		case len(rows) != len(want[name]):
			found = append(found, fmt.Sprintf("rows: %d, want %d", len(rows), len(want[name])))
		default:
			for i, row := range want[name] {
				if !isSame(any(rows[i]), any(row)) {
					found = append(found, fmt.Sprintf("row %d: %v, want %v", i+1, rows[i], row))
					break
				}
			}
		}
	}
	return found
}

// isSame compares JSON values. It compares numbers by value.
func isSame(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, fine := new(big.Rat).SetString(a.String())
		y, right := new(big.Rat).SetString(b.String())
		return fine && right && x.Cmp(y) == 0
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, isSame)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, isSame)
	}
	return a == b
}

var linkPattern = regexp.MustCompile(`\[((?:[^\[\]\\]|\\.|\[[^\]]*\])*)\]\((?:[^()]|\([^()]*\))*\)`)

// Plain removes Markdown's markup from a text, and leaves a single space between words.
func Plain(text string) string {
	text = linkPattern.ReplaceAllString(text, "$1")
	return strings.ReplaceAll(Simplify(html.UnescapeString(text)), "`", "")
}

func plainGrid(grid [][]string) [][]string {
	var plain [][]string

	for _, row := range grid {
		var cells []string
		for _, cell := range row {
			cells = append(cells, Plain(cell))
		}
		plain = append(plain, cells)
	}
	return plain
}

var rulePattern = regexp.MustCompile(`^\|( ?:?-+:? ?\|)+$`)

// ParseTables returns the tables in a Markdown text.
func ParseTables(text string) [][][]string {
	var tables [][][]string
	var table [][]string

	for line := range strings.Lines(text + "\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "|") && !rulePattern.MatchString(line):
			table = append(table, splitRow(line))
		case !strings.HasPrefix(line, "|") && table != nil:
			tables = append(tables, table)
			table = nil
		}
	}
	return tables
}

// splitRow splits a line at each | without a backslash.
func splitRow(line string) []string {
	var cells []string
	start := 1

	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			cells = append(cells, Plain(line[start:i]))
			start = i + 1
		}
	}
	return cells
}
