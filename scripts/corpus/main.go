// Command corpus writes a text in many languages, of any size, for the demonstration and the
// benchmarks. Package internal/testing/corpus describes its contents.
//
//	scripts/run.sh corpus -bytes 1GiB -seed 1 -o archive.txt
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/testing/corpus"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "corpus:", err)
		}
		os.Exit(2)
	}
}

// run writes the text that args request.
func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("corpus", flag.ContinueOnError)
	flags.SetOutput(stderr)
	size := flags.String("bytes", "64MiB", "the text's exact `size`, such as 1GiB, 500MB or 4096")
	seed := flags.Uint64("seed", 1, "the same seed and size give the same text")
	name := flags.String("o", "", "the `file` to write; - is standard output")
	if err := flags.Parse(args); err != nil {
		return err
	}

	n, err := parseSize(*size)
	switch {
	case err != nil:
		return err
	case *name == "":
		return errors.New("name the output: -o FILE, or -o - for standard output")
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}

	show := newMeter(stderr, n)
	if *name == "-" {
		return corpus.Write(stdout, n, *seed, show.update)
	}
	return writeFile(*name, n, *seed, show)
}

// writeFile writes the text to a file. Its error includes the error of closing the file.
func writeFile(name string, size int64, seed uint64, show *meter) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(corpus.Write(f, size, seed, show.update), f.Close())
}

// parseSize reads a number of bytes with an optional unit.
func parseSize(s string) (int64, error) {
	unit := int64(1)
	number := s
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"GiB", 1 << 30},
		{"TiB", 1 << 40},
		{"kB", 1e3},
		{"KB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"B", 1},
	} {
		if n, ok := strings.CutSuffix(s, u.suffix); ok {
			number, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}

	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return 0, fmt.Errorf("invalid size %q: write for example 1GiB, 500MB or 4096", s)
	}
	return n * unit, nil
}
