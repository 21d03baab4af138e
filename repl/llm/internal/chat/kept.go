package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// keptFile is the file that stores the traits of a server's models.
type keptFile struct {
	Version int               `json:"version"`
	Server  string            `json:"server"`
	Models  map[string]traits `json:"models"`
}

const (
	keptVersion = 1
	maxKept     = 1 << 20 // bytes of a file; maxModels entries with maxSchemas each need less
)

// keptName returns the file for a server, or "" without a folder.
func keptName(folder, server string) string {
	if folder == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(server))
	return filepath.Join(folder, hex.EncodeToString(sum[:16])+".json")
}

// readTraits reads the traits of a server's models, except old ones. A missing file is the same as
// an empty one.
func readTraits(path, server string) (map[string]traits, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]traits{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()

	text, err := io.ReadAll(io.LimitReader(file, maxKept+1))
	if err != nil {
		return nil, err
	}
	kept, err := decodeKept(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w; delete it", path, err)
	}
	if kept.Server != server {
		return map[string]traits{}, nil
	}

	now := time.Now()
	for model, t := range kept.Models {
		if t.isOld(now) {
			delete(kept.Models, model)
		}
	}
	return kept.Models, nil
}

// decodeKept decodes a file. Any member that this version does not write is an error.
func decodeKept(text []byte) (keptFile, error) {
	var kept keptFile
	if len(text) > maxKept {
		return kept, fmt.Errorf("it has more than %d bytes", maxKept)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&kept); err != nil {
		return kept, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return kept, errors.New("there is more after the value")
	}

	if kept.Version != keptVersion {
		return kept, fmt.Errorf("version %d is unknown", kept.Version)
	}
	if len(kept.Models) > maxModels {
		return kept, fmt.Errorf("it has more than %d models", maxModels)
	}
	for model, t := range kept.Models {
		if len(model) > maxName || !t.isValid() {
			return kept, fmt.Errorf("the entry of model %.*q makes no sense", maxName, model)
		}
	}
	if kept.Models == nil {
		kept.Models = map[string]traits{}
	}
	return kept, nil
}

// isValid reports whether learn could have produced the traits.
func (t *traits) isValid() bool {
	known := []string{schemaPart, streamPart, wholePart, streamOptionsPart, systemPart, toolsPart, oneCallPart}
	for _, p := range parts {
		known = append(known, p.name)
	}
	isUnknown := func(part string) bool { return !slices.Contains(known, part) }
	isNoHash := func(hash string) bool {
		sum, err := hex.DecodeString(hash)
		return err != nil || len(sum) != 16
	}

	isLimit := slices.Contains([]string{"", noLimit, "max_tokens", "max_completion_tokens"}, t.Limit)
	isCount := t.MaxTokens == 0 || t.MaxTokens >= leastLimit && t.MaxTokens <= 1<<28
	return isLimit && isCount && len(t.Without) <= len(known) && len(t.Schemas) <= maxSchemas &&
		!slices.ContainsFunc(t.Without, isUnknown) && !slices.ContainsFunc(t.Schemas, isNoHash)
}

// writeTraits replaces the entry of a model. It keeps entries that another process has written
// since. The file is replaced atomically.
func writeTraits(path, server, model string, t traits) error {
	models, err := readTraits(path, server)
	if err != nil {
		models = map[string]traits{}
	}
	if _, isOld := models[model]; !isOld {
		makeRoom(models)
	}
	models[model] = t
	text, err := json.MarshalIndent(keptFile{keptVersion, server, models}, "", "  ")
	if err != nil {
		return err
	}

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := removeOldest(filepath.Dir(path)); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".kept-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails once it is renamed
	_, err = file.Write(append(text, '\n'))
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// maxServers bounds the files in a folder.
const maxServers = 256

// removeOldest makes room for a file in a folder that is full.
func removeOldest(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) < maxServers {
		return err
	}

	var oldest fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && (oldest == nil || info.ModTime().Before(oldest.ModTime())) {
			oldest = info
		}
	}
	if oldest == nil {
		return nil
	}
	return os.Remove(filepath.Join(folder, oldest.Name()))
}
