// Command aot compiles a WebAssembly module to machine code, together with wasm2c and clang.
//
//	aot unpack DIR                   writes the committed module, image and profiles
//	aot rewrite RAW C                changes wasm2c's output, and adds functions for the host
//	aot pack CODE.elf C BLOB         packs the linked program as a blob of internal/machine/aot
//	aot describe LOCK FLAGS PROFILES DIR ARCH=BLOB...  compresses blobs and their profiles, and
//	                                 writes their manifest
//
// wasm2c writes guest.h, guest-impl.h and guest_*.c to RAW. rewrite and pack reject anything
// unexpected, because the blob is part of the wall around a guest.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "aot:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: aot unpack DIR | rewrite RAW C | pack CODE.elf C BLOB | " +
	"describe LOCK FLAGS PROFILES DIR ARCH=BLOB [ARCH=BLOB]")

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "unpack":
		return unpack(args[1])
	case len(args) >= 6 && args[0] == "describe":
		return describe(args[1], args[2], args[3], args[4], args[5:])
	case len(args) == 3 && args[0] == "rewrite":
		return rewriteFolder(args[1], args[2])
	case len(args) == 4 && args[0] == "pack":
		return packFile(args[1], args[2], args[3])
	}
	return errUsage
}

// rewriteFolder rewrites the files of a folder.
func rewriteFolder(from, to string) error {
	paths, err := filepath.Glob(filepath.Join(from, "guest*"))
	if err != nil {
		return err
	}

	files := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files[filepath.Base(path)] = string(data)
	}

	if files, err = rewrite(files); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}

	for name, text := range files {
		if err := os.WriteFile(filepath.Join(to, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
