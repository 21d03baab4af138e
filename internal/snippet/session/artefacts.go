package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/rlmhq/rlm/internal/data/mediatype"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// Bounds on the artefacts of one snippet.
const (
	maxArtefacts     = 64
	maxArtefactBytes = 64 << 20 // bytes of all artefacts together
)

// artefacts holds the figures and other values that a snippet gave the host to keep.
type artefacts struct {
	list  []tiers.Artefact
	bytes int
}

// artefactKinds holds the prefixes of the names of artefacts.
var artefactKinds = map[string]bool{"answer": true, "figure": true, "value": true}

// artefactTypes maps the media types that a guest may declare to their file name extensions. Binary
// types are recognised by their first bytes.
var artefactTypes = map[string]string{
	"application/gzip":         ".gz",
	"application/octet-stream": ".bin",
	"application/pdf":          ".pdf",
	"application/zip":          ".zip",
	"image/bmp":                ".bmp",
	"image/gif":                ".gif",
	"image/jpeg":               ".jpg",
	"image/png":                ".png",
	"image/svg+xml":            ".svg",
	"image/webp":               ".webp",
	"text/html":                ".html",
	"text/latex":               ".tex",
	"text/markdown":            ".md",
}

// description describes an artefact in a snippet and in an answer.
type description struct {
	File   string `json:"file"`
	Type   string `json:"type"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// takeArtefact stores an artefact and returns its description.
func (a *Accounts) takeArtefact(body []byte) Reply {
	kind, rest, isKind := bytes.Cut(body, []byte{0})
	given, data, isType := bytes.Cut(rest, []byte{0})
	if !isKind || !isType || !artefactKinds[string(kind)] {
		return fail(errRequest)
	}

	kept := &a.artefacts
	if len(kept.list) >= maxArtefacts {
		return fail(fmt.Errorf("a snippet may give at most %d pictures and other artefacts: "+
			"write further files below %s", maxArtefacts, tiers.OutFolder))
	}
	most := int(min(maxArtefactBytes, a.cfg.Limits.Memory))
	if len(data) > most-kept.bytes {
		return fail(fmt.Errorf("the pictures and other artefacts of a snippet may take at most %s: "+
			"make them smaller", quantity.IBytes(most)))
	}

	one := tiers.Artefact{Type: artefactType(string(given), data), Data: bytes.Clone(data)}
	one.Name = fmt.Sprintf("%s-%d-%d%s", kind, a.ordinal, len(kept.list)+1, artefactTypes[one.Type])
	kept.list, kept.bytes = append(kept.list, one), kept.bytes+len(data)

	return okJSON(describe(one))
}

// describe returns the description of an artefact, for JSON.
func describe(a tiers.Artefact) description {
	sum := sha256.Sum256(a.Data)
	return description{
		File: a.Name, Type: a.Type, Bytes: len(a.Data), SHA256: hex.EncodeToString(sum[:]),
	}
}

// artefactType returns the type declared by the guest, if it is known, otherwise the type detected
// from the first bytes.
func artefactType(given string, data []byte) string {
	if artefactTypes[given] != "" {
		return given
	}

	return mediatype.Detect(data)
}
