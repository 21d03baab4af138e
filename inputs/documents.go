package inputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/documents"
	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// document describes how to read a file as a document, and its apparent kind.
type document struct {
	kind       documents.Kind
	shown      bigtext.Kind
	isWorkbook bool // its parts are sheets
}

// byExtension contains the documents that cannot be identified by their content alone: texts with
// their own syntax, and containers.
var byExtension = map[string]documents.Kind{
	".eml": documents.Mail, ".mht": documents.Mail, ".mhtml": documents.Mail,
	".mbox": documents.Mailbox, ".mbx": documents.Mailbox,
	".html": documents.HTML, ".htm": documents.HTML, ".xhtml": documents.HTML,
	".ipynb": documents.Notebook,
}

func init() {
	const zipped = `.docx .docm .dotx .dotm .xlsx .xlsm .xltx .xltm .xlsb .pptx .pptm .potx .potm
		.ppsx .ppsm .odt .ott .ods .ots .odp .otp .odg .epub`
	for _, extension := range strings.Fields(zipped) {
		byExtension[extension] = documents.Zip
	}
	for _, extension := range []string{".doc", ".dot", ".xls", ".xlt", ".ppt", ".pot", ".pps", ".msg"} {
		byExtension[extension] = documents.OLE
	}
}

var (
	xmlSheetMark = []byte("urn:schemas-microsoft-com:office:spreadsheet")

	pdfMark = []byte("%PDF-")
	oleMark = []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")

	// mailStart matches the beginning of messages in files with any name.
	mailStart = lazyregexp.New(`(?i)^(return-path|delivered-to|received|mime-version|from|date): ?\S`)
	mailField = lazyregexp.New(`(?im)^(message-id|subject|date): ?\S`)
	mboxStart = lazyregexp.New(`^From \S+ .*\d\d:\d\d:\d\d.*\r?\n[A-Za-z-]+: `)
	htmlStart = lazyregexp.New(`(?i)^(\xef\xbb\xbf)?\s*(<!doctype html|<html[\s>])`)

	// Programs write HTML and XML files for Word and Excel with the extensions of old formats.
	pageStart = lazyregexp.New(`(?is)^(\xef\xbb\xbf)?\s*(<\?xml[^>]*\?>\s*)?(<!--.*?-->\s*)*` +
		`<(!doctype html|html|head|meta|body|style|table|div|center)[\s>]`) //nolint:misspell // the element of HTML
	xmlSheetStart = lazyregexp.New(`(?is)^(\xef\xbb\xbf)?\s*<\?xml.*<([a-z]+:)?workbook[\s>]`)
)

// findDocument returns how to read a file as a document, based on its beginning and then its name,
// or nil if it is not a document.
func findDocument(name string, head []byte) *document {
	extension := strings.ToLower(filepath.Ext(name))
	named := byExtension[extension]

	switch {
	case bytes.HasPrefix(head, pdfMark),
		extension == ".pdf" && bytes.Contains(head[:min(len(head), 1024)], pdfMark):
		return &document{kind: documents.PDF, shown: "pdf"}
	case isZip(head):
		return findZipped(named, extension, head)
	case bytes.HasPrefix(head, oleMark):
		return &document{kind: documents.OLE, shown: showContainer(named == documents.OLE, extension, head)}
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		return &document{kind: documents.RTF, shown: "rtf"}
	case looksBinary(head) && (named != documents.HTML || !isMarkedUTF16(head)):
		return nil // other texts in UTF-16 may also match, and are decoded as text
	case named == documents.Notebook && bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")):
		return &document{kind: named, shown: "ipynb"}
	case named == documents.HTML, extension == "" && htmlStart.Match(head),
		named == documents.OLE && pageStart.Match(head):
		return &document{kind: documents.HTML, shown: bigtext.KindHTML}
	case (named == documents.OLE || extension == ".xml") &&
		bytes.Contains(head, xmlSheetMark) && xmlSheetStart.Match(head):
		return &document{kind: documents.SpreadsheetXML, shown: "spreadsheetml"}
	case (named == documents.Mailbox || extension == "") && mboxStart.Match(head):
		return &document{kind: documents.Mailbox, shown: "mbox"}
	case named == documents.Mail, extension == "" && mailStart.Match(head) && mailField.Match(head):
		return &document{kind: documents.Mail, shown: "eml"}
	}
	return nil
}

// isMarkedUTF16 reports whether a text has a byte order mark of UTF-16, which the HTML reader
// decodes.
func isMarkedUTF16(head []byte) bool {
	isUTF32 := bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00"))
	return !isUTF32 && (bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")))
}

// findZipped returns the document that a zip archive contains, or nil if the archive is not a
// document.
func findZipped(named documents.Kind, extension string, head []byte) *document {
	shown := showContainer(named == documents.Zip, extension, head)
	if named != documents.Zip && byExtension["."+string(shown)] != documents.Zip {
		return nil
	}
	return &document{kind: documents.Zip, shown: shown}
}

// showContainer returns the apparent kind of a container, based on its beginning and then its
// name.
func showContainer(isNamed bool, extension string, head []byte) bigtext.Kind {
	switch found := findKind(head); {
	case found != "" && found != "zip" && found != "ole":
		return found
	case isNamed:
		return bigtext.Kind(extension[1:])
	}
	return "ole"
}

// convert converts a document to text, and returns both. A document without text remains unchanged,
// and a note reports that. convert owns the text. For any other file, it returns a nil document.
func (r *reader) convert(
	ctx context.Context, text *bigtext.Text,
) (*bigtext.Text, *document, []string, error) {
	if r.KeepDocuments {
		return text, nil, nil, nil
	}
	head, err := readHead(text)
	if err != nil {
		return nil, nil, nil, errors.Join(err, text.Close())
	}
	found := findDocument(text.Name(), head)
	if found == nil {
		return text, nil, nil, nil
	}

	made, about, err := r.convertAs(ctx, text, found)
	if _, ok := errors.AsType[*documents.ProblemError](err); ok {
		return r.keep(text, found, err)
	}
	if err != nil {
		err = fmt.Errorf("cannot read %s as %s: %w (--no-convert gives its bytes)",
			filepath.Base(text.Name()), found.shown, r.explainLimit(err, text.Size()))
		return nil, nil, nil, errors.Join(err, text.Close())
	}
	var sections []bigtext.Section
	for _, part := range about.Parts {
		sections = append(sections, bigtext.Section(part))
	}
	made.MarkDocument(found.shown, sections)
	if found.kind == documents.PDF {
		r.markPages(made)
	}
	return made, found, describeDocument(found, about), nil
}

// keep leaves a document unchanged because of a problem.
func (r *reader) keep(text *bigtext.Text, found *document, problem error) (
	*bigtext.Text, *document, []string, error,
) {
	p, ok := errors.AsType[*documents.ProblemError](problem)
	isText := slices.Contains([]documents.Kind{
		documents.HTML, documents.Notebook, documents.Mail, documents.Mailbox, documents.SpreadsheetXML,
	}, found.kind)

	switch {
	case found.kind == documents.Zip && ok && p.Kind == documents.Unsupported:
		return text, nil, nil, nil // an archive
	case isText:
		note := fmt.Sprintf("cannot convert it from %s to Markdown, so it is as in the file: %v",
			found.shown, problem)
		return text, nil, []string{note}, nil
	}

	text.MarkBinary(found.shown)
	note := fmt.Sprintf("cannot read it as %s: %v; it is not text but %s, which are in .bytes",
		found.shown, problem, quantity.IBytes(text.Size()))
	if found.kind == documents.PDF && ok && p.Pages > 0 {
		text.MarkDocument(text.Kind(), make([]bigtext.Section, p.Pages))
		r.markPages(text)
		note += "; .parts[0].image() is a picture of its first page"
	}
	return text, found, []string{note}, nil
}

// convertAs converts a document of the given kind. It owns the text only if it returns no error.
func (r *reader) convertAs(
	ctx context.Context, text *bigtext.Text, found *document,
) (*bigtext.Text, *documents.Description, error) {
	var about *documents.Description
	made, err := r.spool(ctx, text, func(ctx context.Context, out io.Writer) (err error) {
		section := io.NewSectionReader(text, 0, text.Size())
		about, err = documents.Convert(ctx, r.documentOptions(), found.kind, section, out)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	found.isWorkbook = about.Noun == "sheet"
	made.OwnOriginal(text)
	return made, about, nil
}

// spool returns the text that write produces from another text, within the limits on unpacked
// bytes.
func (r *reader) spool(
	ctx context.Context, from *bigtext.Text, write func(ctx context.Context, out io.Writer) error,
) (*bigtext.Text, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	source, target := io.Pipe()
	failed := make(chan error, 1)

	go func() {
		err := write(ctx, &boundedWriter{reader: r, target: target, packed: from.Size()})
		_ = target.CloseWithError(err) // it never fails
		failed <- err
	}()

	made, err := bigtext.Spooled(ctx, from.Name(), source, r.MaxUnpacked, func() error { return nil })
	cancel(err)
	_ = source.Close() // it never fails
	if failure := <-failed; failure != nil && !errors.Is(failure, io.ErrClosedPipe) {
		err = failure
	}
	if err != nil && made != nil {
		err = errors.Join(err, made.Close())
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}

// These limits apply to the conversion of a folder before a snippet runs: the bytes of documents,
// and the latest time at which a conversion may begin.
const (
	mostConverted = 256 << 20
	lastConverted = time.Minute
)

// convertMembers converts documents of a folder in parallel, and returns sentences about unreadable
// parts. Texts that took long to convert are kept, so that a snippet receives them immediately.
func (r *reader) convertMembers(ctx context.Context, dir *bigtext.Dir, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var sum int64
	var rest []string
	begun := time.Now()
	var done atomic.Int64
	notes := make([][]string, len(names))
	stop := r.tellWhile(func() string {
		return fmt.Sprintf("converting documents: %d of %d", done.Load(), len(names))
	})
	defer stop()

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		size, err := dir.Size(name)
		if sum += size; err != nil || sum > mostConverted || time.Since(begun) > lastConverted {
			rest = []string{quantity.Plural(len(names)-i, "more document", "") + " will be converted when opened"}
			break
		}
		group.Go(func() error {
			notes[i] = r.convertMember(ctx, dir, name)
			done.Add(1)
			return ctx.Err()
		})
	}
	err := group.Wait()
	return limitNotes(append(slices.Concat(notes...), rest...)), err
}

// convertMember converts a document and returns sentences about unreadable parts. It ignores
// errors, because a snippet that uses the document receives them again.
func (r *reader) convertMember(ctx context.Context, dir *bigtext.Dir, name string) []string {
	text, err := dir.Bytes(ctx, name)
	if err != nil {
		return nil
	}
	text, found, notes, err := r.convert(ctx, text)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", name, err)}
	}
	defer text.Close()
	if found != nil && !text.IsBinary() {
		notes = notes[1:] // the first reports the conversion
	}
	for i := range notes {
		notes[i] = name + ": " + notes[i]
	}
	return notes
}

// limitNotes keeps the first notes and counts the others.
func limitNotes(notes []string) []string {
	const most = 20
	if len(notes) <= most {
		return notes
	}
	return append(notes[:most:most], quantity.Comma(len(notes)-most)+" more notes on documents")
}

// tellWhile reports progress about every second until stop is called, and less and less often while
// the progress does not change.
func (r *reader) tellWhile(what func() string) (stop func()) {
	if r.Progress == nil {
		return func() {}
	}
	var group sync.WaitGroup
	stopped := make(chan struct{})
	group.Go(func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		told, pause, left := "", 1, 0 // in ticks
		for {
			select {
			case <-ticks.C:
				text := what()
				if left--; text == told && left > 0 {
					continue
				}
				if text != told {
					pause = 1
				}
				r.Progress(text)
				pause *= 2
				told, left = text, pause
			case <-stopped:
				return
			}
		}
	})
	return func() {
		close(stopped)
		group.Wait()
	}
}

// documentOptions returns the locations of cached code and texts.
func (r *reader) documentOptions() documents.Options {
	o := documents.Options{Progress: r.Progress, Bounds: r.bounds()}
	dir, err := codecache.Find(r.CacheDir)
	if err == nil && dir != "" { // without the cache, the reader starts more slowly
		o.CacheDir, o.TextDir = dir, filepath.Join(dir, "documents")
	}
	return o
}

// boundedWriter fails at the limits on unpacked bytes.
type boundedWriter struct {
	*reader
	target io.Writer
	packed int64
	got    int64
}

// Write implements io.Writer.
func (b *boundedWriter) Write(p []byte) (int, error) {
	b.got += int64(len(p))
	if err := b.checkUnpacked(b.got, b.packed); err != nil {
		return 0, err
	}
	return b.target.Write(p)
}

func (r *reader) bounds() rustmodule.Bounds {
	return rustmodule.Bounds{MaxUnpacked: r.MaxUnpacked, MaxRatio: r.MaxRatio}
}

// explainLimit explains which limit a file of the given size exceeded, and how to raise the limit.
func (r *reader) explainLimit(err error, size int64) error {
	passed, ok := errors.AsType[*rustmodule.LimitError](err)
	unpacked, memory := r.bounds().Unpacked(size), r.bounds().Memory(size)

	switch {
	case errors.Is(err, rustmodule.ErrTooDeep):
		return fmt.Errorf("%w, which suggests a malicious file", err)
	case !ok:
		return err
	case passed.Limit == "Unpacked" && unpacked == r.MaxUnpacked:
		return fmt.Errorf("%w: it unpacks to more than %s: raise --max-unpacked",
			bigtext.ErrTooLarge, quantity.IBytes(unpacked))
	case passed.Limit == "Unpacked":
		return fmt.Errorf("%w: it unpacks to more than %s, which suggests a malicious file: raise --max-ratio",
			bigtext.ErrTooLarge, quantity.IBytes(unpacked))
	case passed.Limit == "Memory" && memory == rustmodule.MaxMemory:
		return fmt.Errorf("%w: it needs more than %s of memory", bigtext.ErrTooLarge, quantity.IBytes(memory))
	case passed.Limit == "Memory":
		return fmt.Errorf("%w: it needs more than %s of memory, which suggests a malicious file: "+
			"raise --max-ratio", bigtext.ErrTooLarge, quantity.IBytes(memory))
	}
	return fmt.Errorf("%w: it takes too long, which suggests a malicious file", bigtext.ErrTooLarge)
}

// describeDocument returns sentences about a text's origin.
func describeDocument(found *document, about *documents.Description) []string {
	note := fmt.Sprintf("converted from %s to Markdown", found.shown)
	if about.Noun != "" {
		note += ": " + quantity.Plural(len(about.Parts), about.Noun, "")
	}
	notes := []string{note + " (the file itself is in .bytes)"}

	for _, warning := range about.Warnings {
		notes = append(notes, "in the document: "+warning)
	}
	if about.Further > 0 {
		notes = append(notes, "in the document: "+quantity.Comma(about.Further)+" more problems")
	}
	return notes
}
