package inputs

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/encoding"

	"github.com/rlmhq/rlm/internal/data/tables"
)

// Options configure how files are read. The zero value detects everything.
type Options struct {
	// Include contains patterns for the files to read from folders and archives, and Exclude
	// patterns for those to leave out. In patterns, * and ? match within a name, ** matches any
	// number of folders, and [a-z] and {a,b} match one of several alternatives. A pattern without a
	// slash applies to the name of a file or folder, and any other to its path from the top.
	Include, Exclude []string
	// ReadIgnored includes the files that .gitignore excludes in a folder of a Git repository, and
	// the folder .git.
	ReadIgnored bool
	// Encoding is the encoding of every text, such as "utf-8" or "shift_jis". Empty means that it
	// is detected.
	Encoding string
	// CSV contains options of CSV texts, as NAME=VALUE: header, skip, delim, quote, escape,
	// comment, nullstr, decimal and thousands. Other properties are detected.
	CSV []string
	// KeepDocuments leaves documents such as PDF, Word and HTML unchanged. Otherwise they are
	// converted to Markdown, and the bytes of the text contain the file itself.
	KeepDocuments bool
	// FilesOnly refuses a path that leads to a pipe, whose content is otherwise copied: set it for
	// paths from untrusted sources. Folders and patterns always leave out pipes.
	FilesOnly bool
	// Servers lists the only servers that may be contacted for https:// and s3:// addresses, each
	// as HOST or HOST:PORT. They may have private addresses, and http:// is allowed for them. An
	// empty list allows all servers on the public Internet, over https.
	Servers []string
	// CacheDir keeps the compiled code of the document reader. Its code is executed, so it must
	// belong to the user alone. Empty means the user's cache directory, and "none" means no cache.
	CacheDir string
	// MaxUnpacked is the maximum size, in bytes, of an unpacked file, an archive or the text of a
	// document. 0 means 64 GiB.
	MaxUnpacked int64
	// MaxRatio is the maximum ratio of a file's unpacked to its packed size. 0 means 250. It
	// applies beyond 256 MiB, and to the memory for a document beyond its first 256 MiB.
	MaxRatio int64
	// Progress, if set, is called about every second while a file is being unpacked, converted or
	// decoded, with a sentence such as "unpacking app.log.gz: 34 %". Calls do not overlap.
	Progress func(what string)
}

// These are the defaults of the limits, and the size up to which no ratio applies.
const (
	defaultUnpacked = 64 << 30
	defaultRatio    = 250
	anyRatio        = 256 << 20
)

// reader reads files according to its options.
type reader struct {
	Options
	encoding encoding.Encoding // the encoding of every text; nil to detect it
	csv      tables.Options    // of every CSV text
	surveyed int               // number of a folder's files examined before a snippet runs
}

// newReader checks the options.
func newReader(o Options) (*reader, error) {
	if o.MaxUnpacked < 0 || o.MaxRatio < 0 {
		return nil, errors.New("a limit of unpacked bytes cannot be negative")
	}
	if o.MaxUnpacked == 0 {
		o.MaxUnpacked = defaultUnpacked
	}
	if o.MaxRatio == 0 {
		o.MaxRatio = defaultRatio
	}

	for _, list := range [][]string{o.Include, o.Exclude} {
		for _, pattern := range list {
			if pattern == "" || !doublestar.ValidatePattern(pattern) {
				return nil, fmt.Errorf("cannot use the pattern %q: it is malformed", pattern)
			}
		}
	}

	csv, err := readCSVOptions(o.CSV)
	if err != nil {
		return nil, err
	}

	if tell := o.Progress; tell != nil {
		var turn sync.Mutex
		o.Progress = func(what string) {
			turn.Lock()
			defer turn.Unlock()
			tell(what)
		}
	}
	r := &reader{Options: o, csv: csv, surveyed: mostSurveyed}
	if o.Encoding != "" {
		if r.encoding, err = findEncoding(o.Encoding); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// readCSVOptions reads options of the form NAME=VALUE.
func readCSVOptions(list []string) (o tables.Options, err error) {
	for _, one := range list {
		name, value, isPair := strings.Cut(one, "=")
		if !isPair {
			return o, fmt.Errorf("cannot use the option %q of CSV: write NAME=VALUE", one)
		}
		if err := o.Set(strings.ToLower(strings.TrimSpace(name)), value); err != nil {
			return o, err
		}
	}
	err = o.Check()
	return o, err
}
