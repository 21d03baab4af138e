// Command pack turns the linked CPython reactor into the files that the wasm tier ships: an
// instrumented module without data, the memory image over which it runs, and a manifest. The
// same inputs always give the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

type options struct {
	reactor, preload, inputs, flags, out string
}

func parseOptions(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("pack", flag.ContinueOnError)
	set.StringVar(&o.reactor, "reactor", "", "the linked module")
	set.StringVar(&o.preload, "preload", "", "Python to run before the image is taken")
	set.StringVar(&o.inputs, "inputs", "",
		"the SHA-256 hashes of the build's inputs, as sha256sum prints them")
	set.StringVar(&o.flags, "flags", "", "the options of the build's steps, lines of step=options")
	set.StringVar(&o.out, "out", "", "the directory to write to")
	if err := set.Parse(args); err != nil {
		return o, err
	}

	for _, v := range []string{o.reactor, o.preload, o.inputs, o.flags, o.out} {
		if v == "" {
			return o, fmt.Errorf("all of -reactor, -preload, -inputs, -flags and -out are needed")
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}

	reactor, err := os.ReadFile(o.reactor)
	if err != nil {
		return err
	}

	preload, err := os.ReadFile(o.preload)
	if err != nil {
		return err
	}

	p, err := build(ctx, reactor, preload)
	if err != nil {
		return err
	}

	files, err := describe(p, o.inputs, o.flags)
	if err != nil {
		return err
	}
	return write(o.out, files)
}

func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}

	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
