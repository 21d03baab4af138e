package runner

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// adviseOnFiles names the context with the file that a refused snippet names, or explains how files
// get into the sandbox and out of it. It returns an empty string for a snippet that needs no files.
// A tier with files would not have the host's files either.
func (e *escalation) adviseOnFiles(plan *router.Plan) string {
	if plan.Needs == nil || !slices.ContainsFunc(plan.Needs.Features, func(f router.FeatureNeed) bool {
		return f.Feature == tiers.FeatureFiles
	}) {
		return ""
	}

	for i := range e.cfg.Config.Inputs {
		input := &e.cfg.Config.Inputs[i]
		file := path.Base(input.Name)
		name := variableOf(i, e.job.Language)
		if input.Name == "" || !names(e.job.Source, file) && !strings.Contains(e.job.Source, name+".name") {
			continue
		}
		file = texts.OneLine(file)
		if input.Dir != nil {
			return fmt.Sprintf("the host's files are not here, but %s is the variable %s, "+
				"a mapping of its files: use %s", file, name, name)
		}
		return fmt.Sprintf("the host's files are not here, but %s is the variable %s: "+
			"use %s instead of the file", file, name, name)
	}
	return e.adviseOnHostFiles(openedFile(e.job.Source))
}

// adviseOnHostFiles explains how files get into the sandbox and out of it. The name of a file may
// be empty.
func (e *escalation) adviseOnHostFiles(file string) string {
	advice := fmt.Sprintf("the host's files are not here: pass a file to read with --context %s",
		cmp.Or(file, "FILE"))
	if e.cfg.Config.Out {
		return advice + ", and write files below " + tiers.OutFolder
	}
	return advice + ", and write files below " + tiers.OutFolder + " with --out FOLDER"
}

// opening matches a call that opens a file with a literal name for reading.
var opening = lazyregexp.New(
	`(?:\bopen|\bPath|\bReadFile|\bOpen)\(\s*["'` + "`" + `]([\w./-]{1,200})["'` + "`" + `]\s*\)`,
)

// openedFile returns the name of the first file that a snippet opens to read, or an empty string.
func openedFile(source string) string {
	if m := opening.FindStringSubmatch(source); m != nil {
		return m[1]
	}
	return ""
}

// explainFile adds to a FileNotFoundError how files get into the sandbox and out of it, unless the
// sandbox has already said so or has files of the host.
func (e *escalation) explainFile() {
	x := e.result.Exception
	if x == nil || x.Type != "FileNotFoundError" || len(e.cfg.Config.Mounts) > 0 ||
		strings.Contains(x.Traceback, "the host's files are not here") {
		return
	}

	_, rest, _ := strings.Cut(x.Message, ": '")
	file, _, found := strings.Cut(rest, "'")
	var advice string
	switch {
	case !found:
		return
	case strings.HasPrefix(file, tiers.OutFolder+"/") && !e.cfg.Config.Out:
		advice = fmt.Sprintf("%s is there only with --out FOLDER", tiers.OutFolder)
	case path.IsAbs(file) && !strings.HasPrefix(file, "/home/"):
		return // probably a file of the sandbox
	default:
		advice = e.adviseOnHostFiles(texts.OneLine(file))
	}

	noted := *x
	noted.Traceback = strings.TrimRight(x.Traceback, "\n") + "\n" + advice + "\n"
	e.result.Exception = &noted
}

// names reports whether a string literal of a snippet names a file, with or without its folder.
func names(source, file string) bool {
	const quotes = "\"'`"
	for at := 0; ; {
		i := strings.Index(source[at:], file)
		if i < 0 {
			return false
		}
		at += i
		before, after := source[:at], source[at+len(file):]
		begins := before != "" && strings.ContainsRune(quotes+"/", rune(before[len(before)-1]))
		ends := after != "" && strings.ContainsRune(quotes+"/", rune(after[0]))
		if begins && ends {
			return true
		}
		at += len(file)
	}
}

// variableOf returns the name of a context's variable.
func variableOf(i int, language tiers.Language) string {
	name := "context"
	if language == tiers.Go {
		name = "Context"
	}
	if i > 0 {
		name += fmt.Sprintf("_%d", i)
	}
	return name
}
