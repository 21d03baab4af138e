package results

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is a file created by snippets.
type File struct {
	File   string `json:"file"`
	Type   string `json:"type"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Base64 is the content of a small file.
	Base64 []byte `json:"base64,omitempty"`
}

// DescribeFile describes a file, including its content if that has at most inline bytes.
func DescribeFile(name, kind string, data []byte, inline int) File {
	sum := sha256.Sum256(data)
	file := File{
		File: name, Type: kind, Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:]),
	}
	if len(data) <= inline {
		file.Base64 = data
	}
	return file
}

// ListFolder describes the files below a folder that are not yet in listed, and adds them to
// listed.
func ListFolder(dir string, inline int, listed map[string]bool) (list []File, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || listed[name] {
			return err
		}
		data, err := root.ReadFile(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		kind, _, _ := strings.Cut(mime.TypeByExtension(path.Ext(name)), ";")
		if kind == "" {
			kind = "application/octet-stream"
		}
		listed[name] = true
		list = append(list, DescribeFile(name, kind, data, inline))
		return nil
	})
	return list, err
}
