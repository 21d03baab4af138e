package golang

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// examine describes why a program died and returns the code of its ending. The program's last
// output is not trusted, and affects only the wording.
func (g *Guest) examine(crash *tiers.Exception) (code int) {
	p := g.current
	last, beginning := g.Accounts.LastWords()
	death := jail.FindDeath(last)
	if death.Cause == "" { // the list of goroutines may be long
		last = []byte(beginning)
		death = jail.FindDeath(last)
	}

	exit := p.howEnded()
	switch {
	case exit.OOM || death.Cause == jail.OutOfMemory:
		g.Accounts.Refuse(tiers.LimitMemory)
		return session.Died
	case exit.Signal == jail.CPUTimeSignal:
		g.Accounts.Fire(tiers.LimitActive)
		return session.Died
	case death.Cause == "" && !exit.Killed && exit.Signal == 0 && exit.Code >= 0:
		g.Accounts.Raise(exitException(exit.Code)) // the snippet ended the process without os.Exit
		return wire.CodeExited
	case death.Cause == "":
		death.Cause, death.Line = "Crash", exit.String()
	}
	if p.isRude {
		death.Line = wire.ErrMessage.Error()
	}

	*crash = tiers.Exception{
		Type:      death.Cause,
		Message:   death.Message(),
		Traceback: traceSnippets(string(last), death.Line),
	}
	return session.Died
}

// howEnded describes the end of a program according to the host's information.
func (p *program) howEnded() jail.Exit {
	exit := jail.Exit{Code: -1, Killed: true, OOM: p.outOfMemory}
	if p.exit != nil && !p.isRude {
		exit.Code, exit.Signal, exit.Killed = p.exit.Code, syscall.Signal(p.exit.Signal), false
	}
	return exit
}

func exitException(code int) *tiers.Exception {
	return &tiers.Exception{
		Type:      "exit",
		Message:   fmt.Sprint(code),
		ExitCode:  code,
		Traceback: fmt.Sprintf("exit status %d\n", code),
	}
}

// suffix matches the suffix in the names of older declarations. Only a repeated snippet can print
// it.
var suffix = lazyregexp.New(`__[0-9]+(_[0-9]+)?\b`)

func stripSuffixes(text []byte) []byte { return suffix.ReplaceAll(text, nil) }

// maxTrace bounds a traceback, in bytes.
const maxTrace = 4096

// traceSnippets returns the lines of a dying runtime's output that refer to snippets.
func traceSnippets(last, line string) string {
	var b strings.Builder
	b.WriteString(line + "\n")
	lines := strings.Split(last, "\n")
	for i := 1; i < len(lines) && b.Len() < maxTrace; i++ {
		at, ok := strings.CutPrefix(lines[i], "\t")
		at = strings.TrimPrefix(at, "./")
		if !ok || !strings.HasPrefix(at, "snippet_") {
			continue
		}
		at, _, _ = strings.Cut(at, " ")
		name, _, _ := strings.Cut(lines[i-1], "(")
		name = suffix.ReplaceAllString(strings.Replace(name, "main.rlm__", "main.main__", 1), "")
		fmt.Fprintf(&b, "%s(...)\n\t%s\n", name, at)
	}
	return b.String()
}

// place matches a traceback's reference to a line of a snippet.
var place = lazyregexp.New(`(?m)^\tsnippet_([0-9]{1,6}):?\.go:([0-9]{1,7})$`)

// quoteLines adds the source lines of snippets to a traceback. running is the source of the last
// snippet.
func (g *Guest) quoteLines(traceback, running string) string {
	return place.ReplaceAllStringFunc(traceback, func(found string) string {
		m := place.FindStringSubmatch(found)
		n, _ := strconv.Atoi(m[1]) // the pattern matched digits
		line, _ := strconv.Atoi(m[2])

		source := running
		if past := g.history.Past(); n > 0 && n <= len(past) {
			source = past[n-1].Source
		}
		if text := lineOf(source, line); text != "" {
			return found + ": " + text
		}
		return found
	})
}

// lineOf returns a line of text without surrounding white space. Lines are counted from 1.
func lineOf(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[line-1])
}
