package inputs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tablesql"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// describeText returns sentences about properties that are not visible in a text's characters.
func (r *reader) describeText(ctx context.Context, text *bigtext.Text) []string {
	if text.IsBinary() {
		return []string{fmt.Sprintf("it is not text but %s of type %s: snippets get the bytes",
			quantity.IBytes(text.Size()), text.Kind())}
	}
	if text.Encoding() == "" {
		return nil
	}

	note := "decoded from " + text.Encoding()
	replaced := countReplaced(ctx, text)
	switch head, err := readHead(text.Original()); {
	case r.encoding != nil && replaced == 0: // as the user specified
		return nil
	case r.encoding != nil:
	case err == nil && detectMarked(head) != nil:
		note += ", as its byte order mark says"
	default:
		note += ", a guess (if it is wrong, pass --encoding)"
	}
	if n := replaced; n > 0 {
		note += fmt.Sprintf("; %s could not be decoded and are U+FFFD", quantity.Plural(n, "character", ""))
	}
	return []string{note}
}

// countReplaced returns the number of characters in a decoded text that replace invalid bytes. It
// ignores errors, because a snippet that uses the text receives them again.
func countReplaced(ctx context.Context, text *bigtext.Text) int64 {
	length, err := text.Len(ctx)
	if err != nil {
		return 0
	}
	n, err := text.Count(ctx, []byte("\uFFFD"), 0, length)
	if err != nil {
		return 0
	}
	return n
}

// singular converts a reason for leaving out several files to one for a single file.
var singular = strings.NewReplacer("files and folders", "file or folder", "links or special files",
	"link or special file", "files ", "file ", "members", "member", "objects ", "object ")

// describeLeftOut returns a sentence about the files that were left out, or nil if there are none.
func describeLeftOut(counts map[string]int) []string {
	var parts []string

	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		shown := reason
		if counts[reason] == 1 {
			shown = singular.Replace(reason)
		}
		parts = append(parts, quantity.Comma(counts[reason])+" "+shown)
	}
	if parts == nil {
		return nil
	}
	return []string{"left out: " + strings.Join(parts, ", ")}
}

// asDocument describes a converted file in a folder.
const asDocument = "converted to Markdown, with the files themselves in .bytes"

// These are the maximum numbers of a folder's files that are examined before a snippet runs. Each
// file on a server costs a request.
const (
	mostSurveyed       = 2_000
	mostSurveyedRemote = 100
)

// survey examines the first bytes of a folder's files, and returns sentences about those that are
// not UTF-8.
func (r *reader) survey(ctx context.Context, dir *bigtext.Dir) (notes []string, err error) {
	kinds := map[string][]string{}
	names := dir.Names()

	for _, name := range names[:min(len(names), r.surveyed)] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if kind := r.look(ctx, dir, name); kind != "" {
			kinds[kind] = append(kinds[kind], name)
		}
	}

	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(kinds[b]), len(kinds[a])), cmp.Compare(a, b))
	}) {
		const shown = 3
		files := kinds[kind]
		list := strings.Join(files[:min(len(files), shown)], ", ")
		if len(files) > shown {
			list += fmt.Sprintf(" and %s more", quantity.Comma(len(files)-shown))
		}
		notes = append(notes, fmt.Sprintf("%s: %s", kind, list))
	}
	more, err := r.convertMembers(ctx, dir, kinds[asDocument])
	if err != nil {
		return nil, err
	}
	notes = append(notes, more...)
	if len(names) > r.surveyed && len(notes) > 0 {
		notes = append(notes, fmt.Sprintf("only the first %s files were looked at before the start",
			quantity.Comma(r.surveyed)))
	}
	return notes, nil
}

// look describes a file in a folder that is not UTF-8. It ignores errors, because a snippet that
// uses the file receives them again.
func (r *reader) look(ctx context.Context, dir *bigtext.Dir, name string) string {
	size, err := dir.Size(name)
	if err != nil || size == 0 {
		return ""
	}
	file, err := dir.Open(name)
	if err != nil {
		return "unreadable"
	}
	defer file.Close()

	head := make([]byte, min(headSize, size))
	n, _ := readBlock(file, head) // as much as is available
	if p := findPacking(head[:n]); p != nil {
		if p.isDamaged(head[:n], int64(n) == size) {
			return "damaged, so that it cannot be unpacked from " + p.name
		}
		return "unpacked from " + p.name + " when opened"
	}
	if !r.KeepDocuments && findDocument(name, head[:n]) != nil {
		return asDocument
	}
	text := bigtext.FromBytes(name, cutCharacter(head[:n], int64(n) < size))
	if isArchive(text) {
		return "archives, which stay as they are in a folder: pass each as a separate context"
	}
	e, kind, err := r.findForm(ctx, text)

	switch {
	case err != nil:
		return ""
	case kind == kindParquet, kind == kindArrow, kind == tablesql.KindDatabase:
		return fmt.Sprintf("tables in %s, whose rows are in .table()", kind)
	case kind != "":
		return fmt.Sprintf("not text but %s, in .bytes", kind)
	case e != nil:
		return "decoded from " + nameEncoding(e)
	}
	return ""
}

// cutCharacter removes a character at the end of the head that may be incomplete.
func cutCharacter(head []byte, isCut bool) []byte {
	if !isCut {
		return head
	}

	for i := 1; i <= 3 && i < len(head); i++ {
		if c := head[len(head)-i]; c >= 0xc0 {
			return head[:len(head)-i]
		} else if c < 0x80 {
			break
		}
	}
	return head
}
