package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/testing/wheelindex"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// jsonget is the script command `[!] jsonget [N:]PATH [PATTERN]`. Line N of the last command's
// standard output (by default its only line) must be a JSON object, in which PATH selects a value:
// keys and indices separated by dots, # for an array's length. PATTERN must match the whole value.
// A string is matched unchanged, anything else as JSON.
func jsonget(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: [!] jsonget [N:]PATH [PATTERN]")
	}
	value, found := lookup(ts, args[0])
	if len(args) == 1 {
		if found == neg {
			ts.Fatalf("%s: found %t: %s", args[0], found, value)
		}
		return
	}
	if !found {
		ts.Fatalf("%s is not there", args[0])
	}
	pattern := regexp.MustCompile(`(?s)\A(?:` + args[1] + `)\z`)
	if pattern.MatchString(value) == neg {
		ts.Fatalf("%s is %s", args[0], value)
	}
}

// jsonkeep is the script command `jsonkeep [N:]PATH VARIABLE`. It sets a variable to the value that
// jsonget finds.
func jsonkeep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: jsonkeep [N:]PATH VARIABLE")
	}
	value, found := lookup(ts, args[0])
	if !found {
		ts.Fatalf("%s is not there", args[0])
	}
	ts.Setenv(args[1], value)
}

// damageLargest is the script command `damage DIR`. It flips a bit in the middle of the largest
// file below DIR.
func damageLargest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damage DIR")
	}
	largest, size := "", int64(0)
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	}))
	data, err := os.ReadFile(largest)
	ts.Check(err)
	data[len(data)/2] ^= 1
	ts.Check(os.WriteFile(largest, data, 0o600))
}

// lookup returns the value at a jsonget path, as a string.
func lookup(ts *testscript.TestScript, path string) (text string, found bool) {
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n")
	number, rest, numbered := strings.Cut(path, ":")
	n := 1
	if numbered {
		var err error
		n, err = strconv.Atoi(number)
		ts.Check(err)
		path = rest
	} else if len(lines) != 1 {
		ts.Fatalf("there are %d lines of output: say which", len(lines))
	}
	if n > len(lines) {
		return "", false
	}
	decoder := json.NewDecoder(strings.NewReader(lines[n-1]))
	decoder.UseNumber()
	var value any
	ts.Check(decoder.Decode(&value))
	if decoder.More() {
		ts.Fatalf("line %d has more than one JSON value", n)
	}
	for _, key := range strings.Split(path, ".") {
		if value, found = child(value, key); !found {
			return "", false
		}
	}
	return jsonText(ts, value), true
}

// child returns the value of a key or an index.
func child(value any, key string) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		inner, found := v[key]
		return inner, found
	case []any:
		if key == "#" {
			return json.Number(strconv.Itoa(len(v))), true
		}
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

func jsonText(ts *testscript.TestScript, value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	ts.Check(encoder.Encode(value))
	return strings.TrimSuffix(b.String(), "\n")
}

// size is the script command `size BYTES FILE`. It checks the size of a file; FILE may be stdout or
// stderr.
func size(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: size BYTES FILE")
	}
	if got := strconv.Itoa(len(ts.ReadFile(args[1]))); got != args[0] {
		ts.Fatalf("%s has %s bytes, want %s", args[1], got, args[0])
	}
}

// crlf is the script command `crlf SOURCE DESTINATION`. It copies a text file with Windows line
// ends.
func crlf(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: crlf SOURCE DESTINATION")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "\n", "\r\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// manyfiles is the script command `manyfiles N DIRECTORY`. It creates the files 0, 1, ... N-1
// there, each of which contains its name.
func manyfiles(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: manyfiles N DIRECTORY")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	dir := ts.MkAbs(args[1])
	ts.Check(os.Mkdir(dir, 0o700))
	for i := range n {
		name := strconv.Itoa(i)
		ts.Check(os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
}

// fuel is the script command `fuel`. It sets FUEL to the fuel in the last command's JSON, and LESS
// to one less.
func fuel(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 0 || neg {
		ts.Fatalf("usage: fuel")
	}
	text, _ := lookup(ts, "usage.fuel")
	used, err := strconv.ParseUint(text, 10, 64)
	ts.Check(err)
	ts.Setenv("FUEL", text)
	ts.Setenv("LESS", strconv.FormatUint(used-1, 10))
}

// venv is the script command `venv DIR MODULE.py`. It creates a virtual environment in DIR in which
// the module can be imported. It needs no ensurepip.
func venv(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: venv DIR MODULE.py")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(ts.Exec(localPython(), "-m", "venv", "--without-pip", "--symlinks", dir))
	places, err := filepath.Glob(filepath.Join(dir, "lib", "python3*", "site-packages"))
	if err != nil || len(places) != 1 {
		ts.Fatalf("the virtual environment has %d places for packages: %v", len(places), err)
	}
	ts.Check(
		os.WriteFile(filepath.Join(places[0], filepath.Base(args[1])), []byte(ts.ReadFile(args[1])),
			0o644),
	)
}

// program is the script command `[!] rlm ARGUMENT...`. It runs rlm as it is shipped.
func program(ts *testscript.TestScript, neg bool, args []string) {
	if err := ts.Exec("rlm", args...); (err != nil) != neg {
		ts.Fatalf("rlm ends with %v", err)
	}
}

// index is the script command `index`. It starts a package index, and sets PIP_INDEX_URL to its
// address. The index contains iniconfig as on PyPI, greet, which needs it, and native, which is
// compiled.
func index(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 0 || neg {
		ts.Fatalf("usage: index")
	}
	greet := map[string]string{
		"greet/__init__.py": "import iniconfig\nfrom . import words\nfrom importlib.resources import files\n" +
			"def hello(): return words.WORD\n" +
			"def text(): return (files(__name__) / 'data' / 'a.txt').read_text()\n",
		// Modules that Python or its standard library may import earlier than a snippet does.
		"org/__init__.py": "import os; os._exit(3)\n",
		"greet.pth":       "import os; os._exit(3)\n", "sitecustomize.py": "raise SystemExit(3)\n",
		"greet/words.py": "WORD = 'hello'\n", "greet/data/a.txt": "from data\n",
		"json/__init__.py": "raise ImportError('a package replaced a standard module')\n",
	}
	server := wheelindex.Start(
		wheelindex.Official(),
		wheelindex.Make("greet-1.5-py3-none-any.whl",
			[]string{"iniconfig>=2", `gone; python_version < "3"`}, greet),
		wheelindex.Make("greet-1.0-py3-none-any.whl", nil,
			map[string]string{"greet.py": "def hello(): return 'old'\n"}),
		wheelindex.Make("native-1.0-cp313-abi3-manylinux_2_17_x86_64.whl", nil,
			map[string]string{"native.abi3.so": ""}),
	)
	ts.Defer(server.Close)
	ts.Setenv("PIP_INDEX_URL", server.URL)
}

// newImage is the script command `newimage`. It sets IMAGE to a name for an image, and removes the
// image after the script.
func newImage(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 0 || neg {
		ts.Fatalf("usage: newimage")
	}
	name := "test-" + strings.ToLower(rand.Text())
	ts.Setenv("IMAGE", name)
	recipe, err := images.Find(images.Python)
	ts.Check(err)
	reference, err := recipe.Extended(name)
	ts.Check(err)

	ts.Defer(func() {
		docker, err := dockerapi.New(os.Getenv("DOCKER_HOST"))
		ts.Check(err)
		defer docker.Close()
		ts.Check(docker.RemoveImage(context.Background(), reference))
	})
}

// serveFiles is the script command `files`. It starts a server with the file app.log, and sets
// SERVER and SERVER_HOST.
func serveFiles(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 0 || neg {
		ts.Fatalf("usage: files")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/app.log" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "line 1\n") // the client would report a failure
	}))
	ts.Defer(server.Close)
	ts.Setenv("SERVER", server.URL)
	ts.Setenv("SERVER_HOST", server.Listener.Addr().String())
}
