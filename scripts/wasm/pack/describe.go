package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strings"

	"github.com/rlmhq/rlm/internal/machine/artefact"
	"github.com/rlmhq/rlm/internal/machine/cpython/manifest"
)

// describe compresses the product and returns the files to write, by name.
func describe(p *product, inputsFile, flagsFile string) (map[string][]byte, error) {
	m := manifest.Manifest{
		Python:       p.python,
		ImagePages:   uint32(len(p.image) / manifest.PageSize),
		StackPointer: p.stackPointer,
		FuelPoints:   p.fuelPoints,
	}

	files := make(map[string][]byte)
	var err error
	if m.Module, err = addCompressed(files, manifest.ModuleFile, p.module); err != nil {
		return nil, err
	}
	if m.Image, err = addCompressed(files, manifest.ImageFile, p.image); err != nil {
		return nil, err
	}
	if m.Inputs, err = readInputs(inputsFile); err != nil {
		return nil, err
	}
	if m.Flags, err = readFlags(flagsFile); err != nil {
		return nil, err
	}

	m.Sources, m.Toolchain = versions(m.Inputs)
	addGoVersions(m.Toolchain)
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}

	files[manifest.ManifestFile] = append(text, '\n')
	return files, nil
}

func addCompressed(files map[string][]byte, name string, data []byte) (artefact.Artefact, error) {
	described, compressed, err := artefact.Compress(name, data)
	if err == nil {
		files[name] = compressed
	}
	return described, err
}

// readLines returns the lines of a file, without empty lines and comments.
func readLines(name string) ([]string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}

	var lines []string
	for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
		line := strings.TrimSpace(scanner.Text())
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// readInputs reads lines of a hash and a file name, as printed by sha256sum.
func readInputs(name string) (map[string]string, error) {
	lines, err := readLines(name)
	if err != nil {
		return nil, err
	}

	inputs := make(map[string]string)
	for _, line := range lines {
		sum, file, ok := strings.Cut(line, "  ")
		if !ok || len(sum) != 2*sha256.Size {
			return nil, fmt.Errorf("%s: bad line %q", name, line)
		}
		inputs[file] = sum
	}
	return inputs, nil
}

// readFlags reads lines of a step, an equals sign and the options.
func readFlags(name string) (map[string]string, error) {
	lines, err := readLines(name)
	if err != nil {
		return nil, err
	}

	flags := make(map[string]string)
	for _, line := range lines {
		step, options, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s: bad line %q", name, line)
		}
		flags[step] = options
	}
	return flags, nil
}

// versions extracts the versions of packages from the names of their files: name_version.dsc for
// sources, name_version_architecture.deb for tools.
func versions(inputs map[string]string) (sources, toolchain map[string]string) {
	sources, toolchain = make(map[string]string), make(map[string]string)
	for file := range inputs {
		name, rest, _ := strings.Cut(file, "_")
		if version, ok := strings.CutSuffix(rest, ".dsc"); ok {
			sources[name] = version
		} else if strings.HasSuffix(rest, ".deb") {
			version, _, _ := strings.Cut(rest, "_")
			if plain, err := url.PathUnescape(version); err == nil {
				version = plain // APT writes the colon of an epoch as %3a
			}
			toolchain[name] = version
		}
	}
	return sources, toolchain
}

// addGoVersions adds the Go modules that influence the bytes: one ran the guest, and the other
// compressed the files.
func addGoVersions(toolchain map[string]string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return
	}

	for _, dep := range info.Deps {
		switch dep.Path {
		case "github.com/tetratelabs/wazero", "github.com/klauspost/compress":
			toolchain[dep.Path] = dep.Version
		}
	}
}
