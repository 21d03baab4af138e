package wheels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	version "github.com/aquasecurity/go-pep440-version"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// PyPI is the default index.
const PyPI = "https://pypi.org/simple"

// Bounds of an index's answers.
const (
	maxPage  = 64 << 20 // bytes
	maxFiles = 100_000  // files per package
)

// patience bounds the request for one page of an index. A download may continue as long as bytes
// keep arriving.
const patience = 60 * time.Second

// index is a server with the simple API.
type index struct {
	url    *url.URL
	client *http.Client
}

// openIndex checks the address of an index. An index without encryption must be on this machine.
func openIndex(address string) (*index, error) {
	if address == "" {
		address = PyPI
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("cannot read the address of the package index: give a URL")
	}

	if err := checkServer(parsed); err != nil {
		return nil, fmt.Errorf("cannot use the package index %s: %w", parsed.Redacted(), err)
	}

	client := &http.Client{CheckRedirect: func(to *http.Request, past []*http.Request) error {
		if len(past) > 5 {
			return errors.New("it redirects more than five times")
		}
		return checkServer(to.URL)
	}}
	return &index{parsed, client}, nil
}

// checkServer refuses a server whose answers others could read or change.
func checkServer(server *url.URL) error {
	ip := net.ParseIP(server.Hostname())
	isHere := server.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case server.Host == "":
		return errors.New("it names no server")
	case server.Scheme == "https", server.Scheme == "http" && isHere:
		return nil
	}
	return errors.New("use https")
}

// file is a wheel offered by an index.
type file struct {
	wheelName
	base    string // file name
	url     *url.URL
	sha256  string // in hex
	python  string // supported versions of Python, as a spec
	yanked  bool
	version version.Version // the package's version
}

// page is an index's answer about a package.
type page struct {
	Meta struct {
		Version string `json:"api-version"`
	} `json:"meta"`
	Files []struct {
		Name   string            `json:"filename"`
		URL    string            `json:"url"`
		Hashes map[string]string `json:"hashes"`
		Python *string           `json:"requires-python"`
		Yanked any               `json:"yanked"` // false, true or the reason
	} `json:"files"`
}

var hexDigest = lazyregexp.New(`^[0-9a-f]{64}$`)

// find returns the wheels of a package. The error wraps errNoPackage if the package does not exist.
func (x *index) find(ctx context.Context, name string) ([]file, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at := x.url.JoinPath(name, "/")

	body, err := x.get(ctx, at, "application/vnd.pypi.simple.v1+json")
	if err != nil {
		return nil, fmt.Errorf("cannot look up the package %s: %w", name, err)
	}
	defer body.Close()

	data, err := io.ReadAll(io.LimitReader(body, maxPage+1))
	if err != nil {
		return nil, fmt.Errorf("cannot look up the package %s: %w", name, err)
	}

	files, err := readPage(data, at, name)
	if err != nil {
		return nil, fmt.Errorf("cannot look up the package %s at %s: %w", name, x.url.Redacted(), err)
	}
	return files, nil
}

var errNoPackage = errors.New("the index has no such package")

// get starts a download. kind is the expected media type, or empty for any.
func (x *index) get(ctx context.Context, at *url.URL, kind string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, errors.New("the address is invalid")
	}
	if kind != "" {
		request.Header.Set("Accept", kind)
	}
	if own := x.url; at.User == nil && own.User != nil && at.Host == own.Host {
		password, _ := own.User.Password()
		request.SetBasicAuth(own.User.Username(), password)
	}

	answer, err := x.client.Do(request)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // the address may contain a password
	}
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w", at.Host, err)
	}

	got, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case answer.StatusCode == http.StatusNotFound:
		err = errNoPackage
	case answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("%s answers %s", at.Host, http.StatusText(answer.StatusCode))
	case kind != "" && got != kind:
		err = fmt.Errorf("%s answers with %.60q: use an index that offers JSON (PEP 691)", at.Host, got)
	}
	if err != nil {
		return nil, errors.Join(err, answer.Body.Close())
	}
	return answer.Body, nil
}

// readPage parses an index's answer about a package. It skips files that are not wheels of the
// package, and files without a digest.
func readPage(data []byte, at *url.URL, name string) ([]file, error) {
	if len(data) > maxPage {
		return nil, fmt.Errorf("the page has more than %d MiB", maxPage>>20)
	}
	var p page
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, errors.New("the page is not what PEP 691 describes")
	}
	if !strings.HasPrefix(p.Meta.Version, "1.") || len(p.Files) > maxFiles {
		return nil, fmt.Errorf("the page has version %.20q and %d files", p.Meta.Version, len(p.Files))
	}

	var list []file
	for i := range p.Files {
		f := &p.Files[i]
		parsed, isWheel := parseWheelName(f.Name)
		sum := f.Hashes["sha256"]
		if !isWheel || parsed.name != name || !hexDigest.MatchString(sum) {
			continue
		}

		v, err := version.Parse(parsed.version)
		if err != nil {
			continue
		}

		place, err := at.Parse(f.URL)
		if err != nil || checkServer(place) != nil {
			continue
		}

		one := file{wheelName: parsed, base: f.Name, url: place, sha256: sum, version: v}
		one.yanked = f.Yanked != nil && f.Yanked != false
		if f.Python != nil {
			one.python = *f.Python
		}
		list = append(list, one)
	}
	return list, nil
}

// choose returns the best wheel of the newest allowed release. It chooses a yanked release, or a
// pre-release, only if a spec names it.
func (t *Target) choose(files []file, name string, specs []string) (file, error) {
	newest, found := t.newest(files, specs)
	if !found {
		wanted := slices.DeleteFunc(slices.Clone(specs), isEmpty)
		if len(wanted) == 0 {
			return file{}, fmt.Errorf(
				"the index has no release of %s for Python %s with a SHA-256 hash", name, t.Python,
			)
		}
		return file{}, fmt.Errorf("no release of %s for Python %s is %s", name, t.Python, strings.Join(wanted, ", "))
	}

	best, rank := file{}, -1
	for i := range files {
		if !files[i].version.Equal(newest) || !t.runs(&files[i]) {
			continue
		}
		if r := t.rank(files[i].tags); r > rank {
			best, rank = files[i], r
		}
	}
	if rank < 0 {
		what := "wheel for this Python and processor"
		if t.Machine == "" {
			what = "wheel of pure Python"
		}
		return file{}, fmt.Errorf("%s %s has no %s: %s", name, newest, what, t.Help(name))
	}
	return best, nil
}

func isEmpty(spec string) bool { return spec == "" }

// newest returns the newest release allowed by all specs.
func (t *Target) newest(files []file, specs []string) (newest version.Version, found bool) {
	named := slices.ContainsFunc(specs, namesPrerelease)
	pinned := slices.ContainsFunc(specs, func(s string) bool { return strings.HasPrefix(s, "==") })
	for i := range files {
		f := &files[i]
		if f.yanked && !pinned || f.version.IsPreRelease() && !named || !t.runs(f) {
			continue
		}
		if found && !f.version.GreaterThan(newest) || !allowed(f.version, specs) {
			continue
		}
		newest, found = f.version, true
	}
	return newest, found
}

// runs reports whether a file supports the target's version of Python.
func (t *Target) runs(f *file) bool {
	own, err := version.Parse(t.Python)
	if err != nil {
		return false
	}
	suits, err := allows(f.python, own)
	return err == nil && suits
}

// allowed reports whether a version meets all specs, which must be valid.
func allowed(v version.Version, specs []string) bool {
	return !slices.ContainsFunc(specs, func(spec string) bool {
		meets, err := allows(spec, v)
		return err != nil || !meets
	})
}

// withoutUser returns an address without user name and password.
func withoutUser(at *url.URL) string {
	plain := *at
	plain.User = nil
	return plain.String()
}
