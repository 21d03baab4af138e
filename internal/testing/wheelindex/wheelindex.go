// Package wheelindex is a local package index for tests: PyPI's simple API in JSON, with wheels
// that the tests make, and one from PyPI.
package wheelindex

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed" // a wheel
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
)

//go:embed testdata/iniconfig-2.3.1-py3-none-any.whl
var iniconfig []byte

// Official returns a wheel from PyPI, of the package iniconfig.
func Official() Wheel { return Wheel{File: "iniconfig-2.3.1-py3-none-any.whl", Data: iniconfig} }

// Wheel is a file of the index.
type Wheel struct {
	// File is the file name, and Data is the content.
	File string
	Data []byte
	// Digest, Python and Yanked are the index's statements about the file. An empty digest stands
	// for the real one.
	Digest, Python string
	Yanked         bool
}

// Make returns a wheel of these files. The wheel's metadata agrees with its name.
func Make(file string, requires []string, files map[string]string) Wheel {
	parts := strings.Split(file, "-")
	name, version := parts[0], parts[1]
	info := fmt.Sprintf("%s-%s.dist-info/", name, version)
	metadata := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)
	for _, r := range requires {
		metadata += "Requires-Dist: " + r + "\n"
	}

	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	all[info+"METADATA"] = metadata + "\nA text.\n"
	all[info+"WHEEL"] = "Wheel-Version: 1.0\n"
	return Wheel{File: file, Data: Zip(all)}
}

// Zip returns an archive of files.
func Zip(files map[string]string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to, err := w.Create(name)
		if err == nil {
			_, err = to.Write([]byte(files[name]))
		}
		if err != nil {
			panic(err) // writing to memory cannot fail
		}
	}
	if err := w.Close(); err != nil {
		panic(err) // as above
	}
	return out.Bytes()
}

// Start serves an index of these wheels. The caller must close the server. The server's URL is that
// of the index.
func Start(wheels ...Wheel) *httptest.Server {
	type file map[string]any
	pages := map[string][]file{}
	mux := http.NewServeMux()
	for _, w := range wheels {
		name, _, _ := strings.Cut(w.File, "-")
		name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		digest := w.Digest
		if digest == "" {
			digest = fmt.Sprintf("%x", sha256.Sum256(w.Data))
		}
		pages[name] = append(pages[name], file{
			"filename": w.File, "url": "../files/" + w.File, "yanked": w.Yanked,
			"hashes": map[string]string{"sha256": digest}, "requires-python": w.Python,
		})
		mux.HandleFunc("GET /files/"+w.File, func(to http.ResponseWriter, _ *http.Request) {
			_, _ = to.Write(w.Data) // the client may be gone
		})
	}

	for name, files := range pages {
		mux.HandleFunc("GET /"+name+"/", func(to http.ResponseWriter, _ *http.Request) {
			to.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
			_ = json.NewEncoder(to).Encode(map[string]any{
				"meta": map[string]string{"api-version": "1.0"}, "name": name, "files": files,
			})
		})
	}
	return httptest.NewServer(mux)
}
