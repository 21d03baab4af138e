package inputs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tablesql"
)

func formatBytes(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

// describeText returns sentences about properties that a text's characters do not show.
func describeText(ctx context.Context, text *bigtext.Text) []string {
	if text.IsBinary() {
		return []string{fmt.Sprintf("it is not text but %s of type %s: snippets get the bytes",
			formatBytes(text.Size()), text.Kind())}
	}
	if text.Encoding() == "" {
		return nil
	}

	note := fmt.Sprintf("decoded from %s (if that is wrong, pass --encoding)", text.Encoding())
	if n := countReplaced(ctx, text); n > 0 {
		note += fmt.Sprintf("; %s could not be decoded and are U+FFFD", plural(n, "character"))
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

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(n) + " " + noun + "s"
}

// describeLeftOut returns a sentence about what was left out, nil if nothing was.
func describeLeftOut(counts map[string]int) []string {
	var parts []string

	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, humanize.Comma(int64(counts[reason]))+" "+reason)
	}
	if parts == nil {
		return nil
	}
	return []string{"left out: " + strings.Join(parts, ", ")}
}

// asDocument describes a converted file of a folder.
const asDocument = "converted to Markdown, with the files themselves in .bytes"

// The maximum number of a folder's files that are examined before a snippet runs. Each file of a
// server costs a request.
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
			list += fmt.Sprintf(" and %s more", humanize.Comma(int64(len(files)-shown)))
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
			humanize.Comma(int64(r.surveyed))))
	}
	return notes, nil
}

// look describes a file of a folder that is not UTF-8. It ignores errors, because a snippet that
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
	n, _ := readBlock(file, head) // as much as there is
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

// cutCharacter removes a character that may be incomplete at the end of the head.
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
