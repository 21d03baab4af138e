package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlmhq/rlm/internal/machine/artefact"
	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/machine/cpython/manifest"
)

// profileName returns the name of an architecture's profile, which is also the name, without the
// extension, of its file next to the machine code. The profile is not embedded in a program.
func profileName(arch string) string { return "profile_" + arch }

// unpack writes the committed module and image to a folder, and the profiles if they belong to
// this module.
func unpack(folder string) error {
	all := map[string]func() ([]byte, error){"python.wasm": cpython.Module, "image.bin": cpython.Image}
	for arch := range cpython.MachineCode().Profiles {
		if cpython.MachineCode().Module == cpython.Manifest().Module.SHA256 {
			all[profileName(arch)] = func() ([]byte, error) { return committedProfile(arch) }
		}
	}
	for name, read := range all {
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

// committedProfile reads an architecture's profile, which the manifest describes.
func committedProfile(arch string) ([]byte, error) {
	compressed, err := os.ReadFile(filepath.Join("internal", "cpython", profileName(arch)+".zst"))
	if err != nil {
		return nil, err
	}
	return cpython.MachineCode().Profiles[arch].Decompress(compressed)
}

// describe compresses blobs, given as ARCHITECTURE=FILE, and their profiles in a folder, and writes
// their manifest.
func describe(inputs, flags, profiles, folder string, blobs []string) error {
	m := manifest.MachineCode{
		Module: cpython.Manifest().Module.SHA256, Toolchain: map[string]string{},
		Code: map[string]artefact.Artefact{}, Profiles: map[string]artefact.Artefact{},
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
		if m.Code[arch], err = compressFile(path, folder, "code_"+arch+".zst"); err != nil {
			return err
		}
		profile := filepath.Join(profiles, profileName(arch))
		if m.Profiles[arch], err = compressFile(profile, folder, profileName(arch)+".zst"); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(folder, manifest.MachineCodeFile), append(text, '\n'), 0o644)
}

// compressFile compresses a file into a folder, under a name.
func compressFile(path, folder, name string) (artefact.Artefact, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return artefact.Artefact{}, err
	}
	described, compressed, err := artefact.Compress(name, data)
	if err != nil {
		return artefact.Artefact{}, err
	}
	return described, os.WriteFile(filepath.Join(folder, name), compressed, 0o644)
}

// readPairs reads lines with two strings each. isReversed means that the second string is the key.
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
