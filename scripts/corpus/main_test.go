package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunWritesAFileOfTheSize(t *testing.T) {
	name := filepath.Join(t.TempDir(), "text")
	var progress bytes.Buffer
	if err := run([]string{"-bytes", "3MiB", "-seed", "9", "-o", name}, io.Discard,
		&progress); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Size() != 3<<20 {
		t.Errorf("the file is %v, error %v", info, err)
	}
	if !strings.Contains(progress.String(), "100%") {
		t.Errorf("progress was %q, want 100%% at its end", &progress)
	}
}

func TestRunWritesToStandardOutput(t *testing.T) {
	var out bytes.Buffer
	if err := run([]string{"-bytes", "500", "-o", "-"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if out.Len() != 500 {
		t.Errorf("%d bytes, want 500", out.Len())
	}
}

func TestRunRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"invalid size":        {"-bytes", "lots", "-o", "-"},
		"name the output":     {"-bytes", "1kB"},
		"unexpected argument": {"-o", "-", "more"},
		"not defined":         {"-colour"},
	} {
		t.Run(want, func(t *testing.T) {
			err := run(args, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("run(%q) = %v, want %q in it", args, err, want)
			}
		})
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "4096": 4096, "17B": 17, "3kB": 3000, "2MiB": 2 << 20, "1GiB": 1 << 30, "5 GB": 5e9,
		"1TiB": 1 << 40,
	} {
		t.Run(s, func(t *testing.T) {
			if got, err := parseSize(s); err != nil || got != want {
				t.Errorf("parseSize(%q) = %d, %v, want %d", s, got, err, want)
			}
		})
	}
	for _, s := range []string{"", "-1", "1.5GiB", "GiB", "99999999999GiB"} {
		t.Run(s, func(t *testing.T) {
			if got, err := parseSize(s); err == nil {
				t.Errorf("parseSize(%q) = %d, want an error", s, got)
			}
		})
	}
}

func TestMeterRedrawsOneLineOnATerminal(t *testing.T) {
	var out bytes.Buffer
	m := newMeter(&out, 100)
	m.terminal = true
	for done := range int64(100) {
		m.update(done + 1)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 1 {
		t.Errorf("%d lines, want 1: %q", lines, &out)
	}
}

func TestMeterWritesALineForEveryTenthElsewhere(t *testing.T) {
	var out bytes.Buffer
	m := newMeter(&out, 1<<20)
	for done := range int64(1 << 10) {
		m.update((done + 1) << 10)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 10 {
		t.Errorf("%d lines, want 10: %q", lines, &out)
	}
}
