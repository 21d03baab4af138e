package graph

import "testing"

// TestEngineIsWhatTheManifestSays compares the committed files with their hashes.
func TestEngineIsWhatTheManifestSays(t *testing.T) {
	if err := files.Check(); err != nil {
		t.Error(err)
	}
}
