package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/testing/documenttruth"
)

// corpusText is the beginning of the page.
const corpusText = `# Files of other tools

` + "`make documents-native`" + ` makes files with the tools that people use, and reads them as a
snippet does: the text, the rows of tables, the members of archives.
` + "`scripts/documents/corpus`" + ` has the generator, whose seed is fixed.
` + "`RLM_WRITE_CORPUS=1 make documents-native`" + ` writes this page.

The truth is what the generator has written. It compares each text, each cell at its place,
each row, and the order of all of them. A second tool, the judge, reads each file too.

* **right**: nothing is lost, changed, doubled or moved.
* **told**: a note on stderr says so: an encoding is a guess.
* **named**: [the limits of inputs](../reference/limitations/inputs.md) name it.
* **silent**: none of these. The test fails.
* **judge differs**: files in which the judge reads something else. The table below says
  why the truth counts.

| format | made by | judge | files | right | told | named | silent | judge differs |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
`

// makerNames maps each maker to the name of its tool or package.
var makerNames = map[string]string{
	"csv": "CPython's csv", "tsv": "CPython's csv", "txt": "CPython's codecs", "json": "CPython's json",
	"ndjson": "CPython's json", "parquet": "pyarrow", "openpyxl": "openpyxl", "xlsxwriter": "XlsxWriter",
	"xlwt": "xlwt", "ods": "odfpy", "spreadsheetml": "the generator", "sheetjs": "SheetJS 0.18.5",
	"docx": "python-docx", "odt": "odfpy", "odp": "odfpy", "rtf": "the generator", "html": "the generator",
	"epub": "ebooklib", "pptx": "python-pptx", "reportlab": "reportlab", "chromium": "Chromium",
	"eml": "CPython's email", "mbox": "CPython's mailbox", "zip": "CPython's zipfile", "ipynb": "nbformat",
}

// describeCorpus returns the page.
func describeCorpus(corpus documenttruth.Corpus, tallies map[string]tally, explained map[string]int) string {
	formats, judges := map[string]string{}, map[string]string{}
	for _, known := range corpus.Files {
		formats[known.Maker], judges[known.Maker] = known.Format, "none"
		if known.Judge != nil {
			judges[known.Maker] = known.Judge.Tool
		}
	}
	makers := slices.SortedFunc(maps.Keys(tallies), func(a, b string) int {
		return strings.Compare(formats[a]+" "+a, formats[b]+" "+b)
	})

	var page strings.Builder
	page.WriteString(corpusText)
	var all tally
	for _, maker := range makers {
		n := tallies[maker]
		writeTally(&page, formats[maker]+" | "+makerNames[maker]+" | "+judges[maker], n)
		all.files, all.right, all.told = all.files+n.files, all.right+n.right, all.told+n.told
		all.limited, all.disputed = all.limited+n.limited, all.disputed+n.disputed
	}
	writeTally(&page, "**all** | | ", all)

	page.WriteString("\nWhere the judge differs, the truth counts:\n\n| made by | why |\n| --- | --- |\n")
	for _, maker := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&page, "| %s | %s |\n", makerNames[maker], reasons[maker])
	}
	page.WriteString("\n| limit | files |\n| --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(explained)) {
		fmt.Fprintf(&page, "| %s | %d |\n", name, explained[name])
	}
	page.WriteString("\n| tool | version |\n| --- | --- |\n")
	for _, name := range slices.SortedFunc(maps.Keys(corpus.Versions), func(a, b string) int {
		return strings.Compare(strings.ToLower(a), strings.ToLower(b))
	}) {
		fmt.Fprintf(&page, "| %s | %s |\n", name, corpus.Versions[name])
	}
	return page.String()
}

func writeTally(page *strings.Builder, what string, n tally) {
	fmt.Fprintf(page, "| %s | %d | %d | %d | %d | %d | %d |\n", what, n.files, n.right, n.told, n.limited,
		n.files-n.right-n.told-n.limited, n.disputed)
}
