package cpython

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/artefact"
	"github.com/rlmhq/rlm/internal/machine/cpython/manifest"
)

func TestArtefactsAreWhatTheManifestSays(t *testing.T) {
	tests := []struct {
		name     string
		artefact artefact.Artefact
		file     []byte
		open     func() ([]byte, error)
	}{
		{manifest.ModuleFile, Manifest().Module, moduleFile, Module},
		{manifest.ImageFile, Manifest().Image, imageFile, Image},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.artefact.File != tt.name {
				t.Errorf("the manifest calls the file %s", tt.artefact.File)
			}
			check(t, "file", tt.file, tt.artefact.CompressedSize, tt.artefact.CompressedSHA256)
			data, err := tt.open()
			if err != nil {
				t.Fatal(err)
			}
			check(t, "content", data, tt.artefact.Size, tt.artefact.SHA256)
		})
	}
}

func check(t *testing.T, what string, data []byte, size int, sum string) {
	t.Helper()
	if len(data) != size {
		t.Errorf("%s: %d bytes, want %d", what, len(data), size)
	}
	got := sha256.Sum256(data)
	if hex.EncodeToString(got[:]) != sum {
		t.Errorf("%s: SHA-256 %x, want %s", what, got, sum)
	}
}

func TestImageIsWholePages(t *testing.T) {
	if got, want := Manifest().Image.Size, int(
		Manifest().ImagePages,
	)*manifest.PageSize; got != want {
		t.Errorf("the image has %d bytes, %d pages have %d", got, Manifest().ImagePages, want)
	}
}

func TestDecompressionIsBounded(t *testing.T) {
	short := Manifest().Module
	short.Size--
	if _, err := open(short, moduleFile); err == nil {
		t.Error("a file that holds more than the manifest says was accepted")
	}
	long := Manifest().Module
	long.Size++
	if _, err := open(long, moduleFile); err == nil {
		t.Error("a file that holds less than the manifest says was accepted")
	}
}
