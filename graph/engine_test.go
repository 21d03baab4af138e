package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
)

// TestEngineIsWhatTheManifestSays compares the committed files with their hashes.
func TestEngineIsWhatTheManifestSays(t *testing.T) {
	var m engineManifest
	if err := json.Unmarshal(manifestFile, &m); err != nil {
		t.Fatal(err)
	}
	sum := func(data []byte) string {
		hash := sha256.Sum256(data)
		return hex.EncodeToString(hash[:])
	}

	module, err := m.Module.Decompress(moduleFile)
	if err != nil || sum(module) != m.Module.SHA256 || sum(moduleFile) != m.Module.CompressedSHA256 {
		t.Errorf("the module is not the manifest's (%v)", err)
	}
	data, err := m.Data.Decompress(dataFile)
	if err != nil || sum(data) != m.Data.SHA256 || sum(dataFile) != m.Data.CompressedSHA256 {
		t.Errorf("the data are not the manifest's (%v)", err)
	}
}
