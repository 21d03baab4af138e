package code

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/pictures"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// MaxInline is the maximum size, in bytes, of a file whose content --json includes.
const MaxInline = 64 << 10

// Gallery handles the artefacts of snippets. It saves them in the folder of --out, and draws
// pictures on a terminal.
type Gallery struct {
	e    *cli.Env
	dir  string // empty if files are not saved
	note func(string, ...any)

	protocol func() pictures.Protocol
	mu       sync.Mutex // snippets of several loops may end at the same time
	Failed   error      // the error of saving a file of a loop's snippet
	answer   *tiers.Artefact
}

// NewGallery returns a gallery for the folder of --out; dir is empty if there is no such folder.
func NewGallery(e *cli.Env, dir string, note func(string, ...any)) *Gallery {
	protocol := sync.OnceValue(func() pictures.Protocol { return findProtocol(e) })
	return &Gallery{e: e, dir: dir, note: note, protocol: protocol}
}

// findProtocol returns the protocol for pictures on standard output.
func findProtocol(e *cli.Env) pictures.Protocol {
	if chosen := e.Settings.Pictures; chosen != "auto" {
		return pictures.Protocol(chosen)
	}
	out, isFile := e.Stdout.(*os.File)
	if !isFile || !cli.IsTerminal(out) {
		return pictures.None
	}

	return pictures.Detect(os.Getenv, func() string {
		if in := e.Input; in != nil && cli.IsTerminal(in) {
			return pictures.Ask(in, out)
		}
		return ""
	})
}

// take saves and draws artefacts. prefix is the node of a sub-loop, and begins the names of the
// files. With isQuiet, take draws nothing.
func (g *Gallery) take(prefix string, list []tiers.Artefact, isQuiet bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range list {
		name := prefix + one.Name
		if g.dir != "" {
			if err := saveFile(g.dir, name, one.Data); err != nil {
				return cli.Broken(fmt.Errorf("cannot save %s: %w", name, err))
			}
		}
		isPiped := strings.HasPrefix(one.Name, "answer-") && !cli.IsTerminal(g.e.Stdout)
		if !isQuiet && !g.draw(one) && !isPiped {
			g.tell(name, one)
		}
	}
	return nil
}

// Event saves the artefacts of a loop's snippet. The names of a sub-loop's files begin with the
// name of its node. It draws no pictures, because a live tree may be on the screen.
func (g *Gallery) Event(event ledger.Event) {
	if event.Kind != ledger.EventSnippet || event.Ran == nil || len(event.Ran.Artefacts) == 0 {
		return
	}
	list := event.Ran.Artefacts
	prefix := ""
	if event.Depth > 0 {
		prefix = event.Node + "-"
	} else if last := &list[len(list)-1]; strings.HasPrefix(last.Name, "answer-") {
		g.answer = last
	}
	if g.dir == "" {
		for _, one := range list {
			g.tell(prefix+one.Name, one)
		}
		return
	}
	if err := g.take(prefix, list, true); err != nil && g.Failed == nil {
		g.Failed = err
	}
}

// DrawAnswer draws the picture that a run returned.
func (g *Gallery) DrawAnswer() {
	if g.answer != nil {
		g.draw(*g.answer)
	}
}

// tell writes a note about an artefact that was not drawn.
func (g *Gallery) tell(name string, one tiers.Artefact) {
	what := fmt.Sprintf("%s (%s, %s)", name, one.Type, quantity.IBytes(len(one.Data)))
	if g.dir == "" {
		g.note("made %s: keep it with --out DIR", what)
		return
	}
	g.note("made %s in %s", what, g.dir)
}

// draw draws a picture, and reports whether the terminal shows it.
func (g *Gallery) draw(one tiers.Artefact) bool {
	protocol := g.protocol()
	if protocol == pictures.None || !strings.HasPrefix(one.Type, "image/") || one.Type == "image/svg+xml" {
		return false
	}
	if err := pictures.Draw(g.e.Stdout, protocol, one.Data); err != nil {
		g.note("%s: %v", one.Name, err)
		return false
	}
	return true
}

// saveFile writes a new, complete file. It never replaces a file.
func saveFile(dir, name string, data []byte) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()

	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, root.Remove(name))
	}
	return nil
}
