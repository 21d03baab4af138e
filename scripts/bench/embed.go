package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// The goals for the smallest program.
const (
	embedModules = 20
	embedBytes   = 22_000_000
	embedEmpty   = 60 * time.Millisecond
	embedCached  = 25 * time.Millisecond
)

// embed builds examples/embed as its users do, and measures its file size and its start.
func (b *bench) embed() error {
	folder, err := os.MkdirTemp("", "rlm-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // a temporary folder

	program := filepath.Join(folder, "embed")
	build := exec.CommandContext(
		b.ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./examples/embed",
	)
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("cannot build examples/embed: %w", err)
	}
	if err := b.embedFile(program); err != nil {
		return err
	}
	return b.embedStart(program, folder)
}

// embedFile measures the program's file size and what it links.
func (b *bench) embedFile(program string) error {
	built, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	info, err := os.Stat(program)
	if err != nil {
		return err
	}

	b.addPlain("modules of other projects that `examples/embed` links", strconv.Itoa(len(built.Deps)),
		fmt.Sprintf("<= %d", embedModules), len(built.Deps) <= embedModules)
	b.addPlain("its file, stripped", inMB(info.Size()), "<= "+inMB(embedBytes),
		info.Size() <= embedBytes)
	return nil
}

// embedStart measures the whole process, with a new cache folder each time, and with a folder that
// an earlier run has filled.
func (b *bench) embedStart(program, folder string) error {
	const runs = 11
	n := 0
	fresh := func() string {
		n++
		return filepath.Join(folder, "cache-"+strconv.Itoa(n))
	}
	if err := b.runEmbed(program, fresh()); err != nil { // afterwards, the program's file is in memory
		return err
	}

	took, err := median(runs, func() error { return b.runEmbed(program, fresh()) })
	if err != nil {
		return err
	}
	b.addPlain("`examples/embed`, the whole process, with an empty cache", inMS(took.Seconds()),
		fmt.Sprintf("<= %g ms", embedEmpty.Seconds()*1e3), took <= embedEmpty)

	filled := filepath.Join(folder, "cache-1")
	took, err = median(runs, func() error { return b.runEmbed(program, filled) })
	if err != nil {
		return err
	}
	b.addPlain("`examples/embed`, the whole process, after that", inMS(took.Seconds()),
		fmt.Sprintf("<= %g ms", embedCached.Seconds()*1e3), took <= embedCached)
	return nil
}

func inMB(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }

func (b *bench) runEmbed(program, cache string) error {
	cmd := exec.CommandContext(b.ctx, program)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("examples/embed: %w", err)
	}
	if string(out) != "2\n" {
		return fmt.Errorf("examples/embed printed %q", out)
	}
	return nil
}
