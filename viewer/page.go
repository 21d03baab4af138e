package viewer

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// These are the parts of the page. The scripts share one scope, in this order.
//
//go:embed page
var files embed.FS

var scripts = []string{
	"format.js", "backend.js", "model.js", "highlight.js", "rows.js", "texts.js", "overview.js", "list.js", "main.js",
}

func read(name string) string {
	data, err := files.ReadFile("page/" + name)
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	return string(data)
}

// script returns the program of the page.
func script() string {
	var b strings.Builder
	b.WriteString("(() => {\n'use strict';\n")
	for _, name := range scripts {
		b.WriteString(read(name) + "\n")
	}
	b.WriteString("})();\n")
	return b.String()
}

func style() string { return read("viewer.css") }

// parts contains the parts in which a server's page and an exported file differ.
type parts struct{ head, tail string }

// page returns the whole page.
func page(p parts) string {
	return strings.NewReplacer("<!--head-->", p.head, "<!--tail-->", p.tail).Replace(read("index.html"))
}

// Export writes a run as one self-contained HTML file, which needs no server.
func Export(w io.Writer, run *Run) error {
	// Go escapes <, > and & in JSON, so no text of the run can end the HTML element.
	data, err := json.Marshal(struct {
		*Run
		Texts [][]Text `json:"texts"`
	}{run, run.Texts})
	if err != nil {
		return err
	}

	head := fmt.Sprintf("<meta http-equiv=\"Content-Security-Policy\" content=%q>\n<style>%s</style>",
		policy(hashOf(script()), hashOf(style())), style())
	whole := page(parts{head: head, tail: "<!--data--><script>" + script() + "</script>"})
	before, after, _ := strings.Cut(whole, "<!--data-->")
	element := `<script type="application/json" id="run-data">`
	for _, piece := range []string{before, element, string(data), "</script>", after} {
		if _, err := io.WriteString(w, piece); err != nil {
			return err
		}
	}
	return nil
}
