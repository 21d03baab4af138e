package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlmhq/rlm/internal/artefact"
	"github.com/rlmhq/rlm/internal/cpython"
	"github.com/rlmhq/rlm/internal/cpython/manifest"
)

// unpack writes the committed module and image to a folder.
func unpack(folder string) error {
	for name, read := range map[string]func() ([]byte, error){
		"python.wasm": cpython.Module, "image.bin": cpython.Image,
	} {
		data, err := read()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// describe compresses blobs, given as ARCHITECTURE=FILE, and describes them.
func describe(inputs, flags, folder string, blobs []string) error {
	m := manifest.MachineCode{
		Module: cpython.Manifest().Module.SHA256,
		Code:   map[string]artefact.Artefact{}, Toolchain: map[string]string{},
	}

	var err error
	if m.Inputs, err = readPairs(inputs, "  ", true); err != nil {
		return err
	}
	if m.Flags, err = readPairs(flags, "=", false); err != nil {
		return err
	}

	for file := range m.Inputs {
		name, rest, _ := strings.Cut(file, "_")
		version, _, _ := strings.Cut(rest, "_")
		if m.Toolchain[name], err = url.PathUnescape(version); err != nil {
			return err
		}
	}

	for _, blob := range blobs {
		arch, path, _ := strings.Cut(blob, "=")
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := "code_" + arch + ".zst"
		described, compressed, err := artefact.Compress(name, data)
		if err != nil {
			return err
		}
		m.Code[arch] = described
		if err := os.WriteFile(filepath.Join(folder, name), compressed, 0o644); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(folder, manifest.MachineCodeFile), append(text, '\n'), 0o644)
}

// readPairs reads lines of two texts. isReversed says that the second one is the key.
func readPairs(path, separator string, isReversed bool) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pairs := map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), separator)
		if !ok {
			return nil, fmt.Errorf("%s: bad line %q", path, line)
		}
		if isReversed {
			key, value = value, key
		}
		pairs[key] = value
	}

	return pairs, nil
}
