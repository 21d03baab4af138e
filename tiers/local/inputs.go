package local

import (
	"fmt"
	"os"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// showTexts adds the files of the session's long texts, and the folder of their characters, to
// the needs of a jail. It returns that folder, or nil without one.
func (t *tier) showTexts(n *needs, accounts *session.Accounts) *session.TextFolder {
	if t.options.AllowNested || t.off != 0 {
		return nil // without a separate file tree, files have no place
	}

	binds, paths := showFiles(accounts.Config().Inputs)
	accounts.ShowFiles(paths)
	n.binds = append(n.binds, binds...)

	folder := accounts.ShowTexts(t.options.Log)
	if folder != nil {
		n.binds = append(n.binds, jail.Bind{Source: folder.Path(), Target: session.TextsAt})
		n.texts = widest * accounts.SumLongTexts()
	}
	return folder
}

// widest is the maximum number of bytes that CPython needs for a character.
const widest = 4

// showFiles returns the binds for the files of long texts, and the path of each input's file in
// the guest, or "" for inputs without one.
func showFiles(inputs []tiers.Input) ([]jail.Bind, []string) {
	paths := make([]string, len(inputs))
	var binds []jail.Bind
	for i, in := range inputs {
		if source := session.FileOf(in, os.Geteuid() == 0); source != "" {
			paths[i] = fmt.Sprintf("/context/%d", i)
			binds = append(binds, jail.Bind{Source: source, Target: paths[i]})
		}
	}

	return binds, paths
}
