// Command sbom writes a software bill of materials in CycloneDX format to standard output. It
// lists what users receive: the Go modules linked into the command, the sources of the
// WebAssembly Python that the command contains, and the contents of the container images that
// the command builds.
//
// It reads pinned information: the modules in the binary itself, the manifest of the interpreter,
// and the locks of the images.
//
//	sbom BINARY VERSION ROOT
package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/rlmhq/rlm/internal/machine/cpython"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("usage: sbom BINARY VERSION ROOT")
	}
	binary, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	binary.Main.Version = args[1] // for the command, the linker sets it
	bom, err := describe(binary, args[2])
	if err != nil {
		return err
	}
	return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).
		EncodeVersion(bom, cdx.SpecVersion1_6)
}

// describe returns the bill for a binary that was built from the tree at root.
func describe(binary *buildinfo.BuildInfo, root string) (*cdx.BOM, error) {
	command := goModule(binary.Main)
	command.Type = cdx.ComponentTypeApplication

	parts := goModules(binary)
	parts = append(parts, interpreter(cpython.Manifest()))
	images, err := imageContents(root)
	if err != nil {
		return nil, err
	}
	parts = append(parts, images...)
	setRefs("", parts)

	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &command}
	for _, setting := range binary.Settings {
		if setting.Key == "vcs.time" {
			bom.Metadata.Timestamp = setting.Value
		}
	}
	bom.Components = &parts
	return bom, nil
}

// setRefs gives each component a unique name, because two images can contain the same package.
func setRefs(parent string, components []cdx.Component) {
	for i := range components {
		c := &components[i]
		c.BOMRef = parent + c.Name + "@" + c.Version
		if c.PackageURL != "" {
			c.BOMRef = parent + c.PackageURL
		}
		if c.Components != nil {
			setRefs(c.BOMRef+"/", *c.Components)
		}
	}
}
