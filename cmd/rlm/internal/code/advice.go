package code

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/tiers"
)

// checkHyphens refuses a long flag with one hyphen, because -context FILE means -c with the code
// ontext. given are the arguments of the command line.
func (f *ExecFlags) checkHyphens(flags *pflag.FlagSet, given []string) error {
	for _, source := range f.code {
		name, _, _ := strings.Cut("c"+source, "=")
		if flags.Lookup(name) != nil && slices.Contains(given, "-c"+source) {
			return fmt.Errorf("-%s is -c with code: give two hyphens, --%s", name, name)
		}
	}
	return nil
}

// dataFormats are the endings of files that hold data, not code.
var dataFormats = []string{
	".bz2", ".cfg", ".csv", ".db", ".docx", ".eml", ".gz", ".html", ".ini", ".ipynb", ".jpg", ".json",
	".jsonl", ".log", ".md", ".ndjson", ".parquet", ".pdf", ".png", ".pptx", ".sqlite", ".tar", ".tgz",
	".toml", ".tsv", ".xlsx", ".xml", ".yaml", ".yml", ".zip", ".zst",
}

// refuseData refuses a data file in place of code, unless the user names its language. A JSON file,
// for example, is a Python program that does nothing.
func (f *ExecFlags) refuseData(name string) error {
	ext := strings.ToLower(filepath.Ext(name))
	if f.routing.IsNamed() || !slices.Contains(dataFormats, ext) {
		return nil
	}
	return fmt.Errorf("%s is data, not code: to work on it, pass --context %s and code with -c; "+
		"to run it as code, name its language with --lang", name, name)
}

// adviseOnData returns what to do if a snippet does not contain code, or an empty string. name is
// the file of the snippet.
func adviseOnData(name string, r tiers.Result) string {
	isCode := slices.Contains([]string{"", "-", ".py", ".go"}, cmp.Or(strings.ToLower(filepath.Ext(name)), name))
	if isCode || r.Exception == nil || r.Exception.Type != "SyntaxError" && r.Exception.Type != "NameError" {
		return ""
	}
	return fmt.Sprintf("%s is run as code: if it is data, pass it with --context %s", name, name)
}

// adviseOnContext returns what to do if a snippet uses a missing context, or an empty string.
func adviseOnContext(r tiers.Result) string {
	if r.Exception == nil || r.Exception.Type != "NameError" ||
		!strings.Contains(r.Exception.Message, "'context' is not defined") {
		return ""
	}
	return "no context has the name context: give one with --context FILE, or --context - for stdin"
}

// adviseOnModule returns what to do if a snippet imports a Python file of the host, which is next
// to the snippet's own file or in the working folder. Otherwise it returns an empty string. It
// removes the advice to add a package of that name, which would be an unrelated package. name is
// the snippet's file, if any.
func adviseOnModule(name string, r *tiers.Result) string {
	if r.Exception == nil || r.Exception.Type != "ModuleNotFoundError" {
		return ""
	}
	_, rest, _ := strings.Cut(r.Exception.Message, "No module named '")
	module, _, _ := strings.Cut(rest, "'")
	module, _, _ = strings.Cut(module, ".")
	if module == "" || strings.ContainsAny(module, `/\`) {
		return ""
	}

	file, err := findModule(module, filepath.Dir(name), ".")
	if err != nil {
		return ""
	}
	noted := *r.Exception
	if head, _, found := strings.Cut(noted.Traceback, "\nno tier is known to have the module "+module+":"); found {
		noted.Traceback = head + "\n"
	}
	r.Exception = &noted

	if filepath.Ext(file) != ".py" {
		return fmt.Sprintf("%s is a folder of the host, and snippets cannot import it", file)
	}
	return fmt.Sprintf("%s is a file of the host, and snippets cannot import it: "+
		"pass it before the code, as in rlm exec %s %s, and use its names without the import",
		file, file, cmp.Or(name, "CODE.py"))
}

// findModule returns the path of a module's file or folder in the first folder that has it.
func findModule(module string, folders ...string) (string, error) {
	for _, folder := range folders {
		file := filepath.Join(folder, module+".py")
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
		if _, err := os.Stat(filepath.Join(folder, module, "__init__.py")); err == nil {
			return filepath.Join(folder, module), nil
		}
	}
	return "", errors.New("no such module")
}

// placeOfSnippet matches a reference to a snippet in a traceback.
var placeOfSnippet = lazyregexp.New(`File "<snippet ([0-9]{1,6})>"|\bsnippet_([0-9]{1,6})\.go\b`)

// nameFiles replaces the numbers of snippets in a traceback with the names of their files. A
// snippet from stdin keeps its number.
func nameFiles(r *tiers.Result, files []string) {
	if r.Exception == nil || len(files) == 0 {
		return
	}
	noted := *r.Exception
	noted.Traceback = placeOfSnippet.ReplaceAllStringFunc(noted.Traceback, func(place string) string {
		groups := placeOfSnippet.FindStringSubmatch(place)
		file := fileOfSnippet(groups[1]+groups[2], files)
		switch {
		case file == "":
			return place
		case groups[2] != "":
			return file
		}
		return `File "` + file + `"`
	})
	r.Exception = &noted
}

// fileOfSnippet returns the name of the file with the snippet of that number, or an empty string.
func fileOfSnippet(number string, files []string) string {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(files) || files[n-1] == "-" {
		return ""
	}
	return files[n-1]
}

// placeOfWarning matches the beginning of a Python warning.
var placeOfWarning = lazyregexp.New(`(?m)^<snippet ([0-9]{1,6})>(:[0-9]+: )`)

// namedWarnings passes on a snippet's stderr. Warnings name the snippets' files, as tracebacks do.
type namedWarnings struct {
	w       io.Writer
	files   []string
	midline bool // the last write ended in the middle of a line
}

func (n *namedWarnings) Write(b []byte) (int, error) {
	text, head := string(b), ""
	if n.midline {
		at := strings.IndexByte(text, '\n') + 1
		if at == 0 {
			return n.w.Write(b)
		}
		head, text = text[:at], text[at:]
	}
	n.midline = len(b) > 0 && b[len(b)-1] != '\n'

	text = placeOfWarning.ReplaceAllStringFunc(text, func(place string) string {
		groups := placeOfWarning.FindStringSubmatch(place)
		if file := fileOfSnippet(groups[1], n.files); file != "" {
			return file + groups[2]
		}
		return place
	})
	if _, err := io.WriteString(n.w, head+text); err != nil {
		return 0, err
	}

	return len(b), nil
}

// looksLikeQuery matches the beginning of a query in SQL.
var looksLikeQuery = lazyregexp.New(`(?i)^(\s|--.*\n)*(select\s+[^\s=.(:]|` +
	`with\s+(recursive\s+)?"?\w+"?\s*(\([^)]*\)\s*)?` +
	`as\s+(not\s+|materialized\s*)*\(\s*select\s)`) //nolint:misspell // SQL's spelling

func isSyntaxError(r tiers.Result) bool {
	return r.Exception != nil && r.Exception.Type == "SyntaxError"
}
