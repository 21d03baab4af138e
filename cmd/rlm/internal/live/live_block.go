package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// erase removes the block from the screen, and leaves the cursor at its first line.
func (v *View) erase() {
	if v.drawn > 0 {
		_, _ = fmt.Fprintf(v.w, "\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}

// draw redraws the block.
func (v *View) draw() {
	if v.screen == nil || v.paused || len(v.nodes) == 0 {
		return
	}
	width, height, err := term.GetSize(int(v.screen.Fd()))
	if err != nil || width < 20 || height < 5 {
		return
	}

	lines := v.layOut(min(maxLoops, height-3))
	v.erase()
	for _, line := range lines {
		_, _ = fmt.Fprintf(v.w, "\x1b[2m%s\x1b[0m\n", cli.Shorten(line, width-1))
	}
	v.drawn = len(lines)
}

// layOut returns the lines of the block: the first active loops in tree order, at most that many,
// and the run's usage.
func (v *View) layOut(most int) []string {
	names := slices.SortedFunc(maps.Keys(v.nodes),
		func(a, b string) int { return slices.Compare(parsePath(a), parsePath(b)) })
	var lines []string
	for i, name := range names {
		if i == most {
			lines = append(lines, fmt.Sprintf("… and %d more loops", len(names)-most))
			break
		}
		n := v.nodes[name]
		text := strings.Repeat("│ ", n.depth) + "├─ "
		if n.name != "" {
			text += n.name + ", "
		}
		text += fmt.Sprintf("turn %d, %s", n.turn, n.state())

		if n.tier != "" {
			text += ", tier " + n.tier
		}
		if n.flying > 0 {
			text += ", " + quantity.Plural(n.flying, "call", "") + " in flight"
		}

		lines = append(lines, text+n.callsText())
	}

	spinner := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	return append(lines, fmt.Sprintf("%c %v, %s", spinner[v.beat%len(spinner)],
		time.Since(v.begun).Round(time.Second), v.spent))
}

// maxTail bounds the drawn part of an unfinished line, in bytes.
const maxTail = 60

// state describes what the loop is doing.
func (n *liveNode) state() string {
	switch {
	case n.waits != "":
		return n.waitText(time.Now())
	case n.writing != "":
		return "writes: " + cli.Escape(strings.ToValidUTF8(n.writing[max(0, len(n.writing)-maxTail):], ""))
	}
	return n.doing
}

// parsePath returns the numbers in a node's name, such as 0.1.12, for sorting.
func parsePath(name string) []int {
	var path []int
	for piece := range strings.SplitSeq(name, ".") {
		n := 0
		for _, digit := range piece {
			n = n*10 + int(digit-'0')
		}
		path = append(path, n)
	}

	return path
}
