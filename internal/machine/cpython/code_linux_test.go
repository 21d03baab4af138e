//go:build linux && (amd64 || arm64)

package cpython

import (
	"runtime"
	"testing"
)

func TestTheMachineCodeIsWhatItsManifestSays(t *testing.T) {
	about := MachineCode()
	if about.Module != Manifest().Module.SHA256 {
		t.Errorf("the code was made of module %s: run make wasm-aot", about.Module)
	}
	artefact := about.Code[runtime.GOARCH]
	check(t, "file", codeBytes, artefact.CompressedSize, artefact.CompressedSHA256)
	data, err := Code()
	if err != nil {
		t.Fatal(err)
	}
	check(t, "content", data, artefact.Size, artefact.SHA256)
}
