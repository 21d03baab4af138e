package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/data/documents"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

const (
	pdfPages  = 200
	pdfRuns   = 5
	pdfReach  = 1.5 // times pypdf
	toolReach = 20  // times pdftotext, which is native code
)

// measureDocuments compares the extraction of a PDF's text with pypdf, and with pdftotext if it is
// installed. It takes the best of several runs, in turns.
func (b *bench) measureDocuments() error {
	folder, err := os.MkdirTemp("", "rlm-bench-documents")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	file := filepath.Join(folder, "pages.pdf")
	made := exec.CommandContext(b.ctx, b.python, "scripts/documents/pages.py", "make", file,
		fmt.Sprint(pdfPages))
	if out, err := made.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	readers := []struct {
		name string
		read func(file string) (time.Duration, string, error)
		best time.Duration
	}{
		{name: "here", read: b.readHere},
		{name: "pypdf", read: b.readPypdf},
		{name: "pdftotext", read: b.readTool},
	}

	if _, err := exec.LookPath("pdftotext"); err != nil {
		readers = readers[:2]
	}
	for range pdfRuns {
		for i := range readers {
			r := &readers[i]
			took, text, err := r.read(file)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if n := strings.Count(text, "the quick brown fox"); n != 45*pdfPages {
				return fmt.Errorf("%s: %d lines", r.name, n)
			}
			if r.best == 0 || took < r.best {
				r.best = took
			}
		}
	}

	speed := func(d time.Duration) string { return fmt.Sprintf("%.0f pages/s", pdfPages/d.Seconds()) }
	for _, r := range readers[1:] {
		reach := float64(pdfReach)
		if r.name == "pdftotext" {
			reach = toolReach
		}
		b.add("text of a PDF, beside "+r.name, speed(readers[0].best), speed(r.best),
			readers[0].best.Seconds()/r.best.Seconds(), reach)
	}
	return nil
}

// readHere converts a document without the cache of texts. The first run compiles the module.
func (b *bench) readHere(file string) (time.Duration, string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return 0, "", err
	}
	var text strings.Builder
	begun := time.Now()
	o := documents.Options{
		CacheDir: filepath.Join(cache, "rlm"),
		Bounds:   rustmodule.Bounds{MaxUnpacked: 1 << 30, MaxRatio: 250},
	}
	section := io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
	_, err = documents.Convert(b.ctx, o, documents.PDF, section, &text)
	return time.Since(begun), text.String(), err
}

func (b *bench) readPypdf(file string) (time.Duration, string, error) {
	out, err := exec.CommandContext(b.ctx, b.python, "scripts/documents/pages.py", "read", file).Output()
	if err != nil {
		return 0, "", err
	}
	var reply struct {
		Seconds float64
		Text    string
	}
	err = json.Unmarshal(out, &reply)
	return time.Duration(reply.Seconds * float64(time.Second)), reply.Text, err
}

func (b *bench) readTool(file string) (time.Duration, string, error) {
	begun := time.Now()
	out, err := exec.CommandContext(b.ctx, "pdftotext", file, "-").Output()
	return time.Since(begun), string(out), err
}
