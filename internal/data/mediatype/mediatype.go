// Package mediatype detects the types of pictures and archives by their first bytes. The standard
// library's http.DetectContentType would link all of net/http into a program without a network.
package mediatype

import "bytes"

// Unknown is the type of other data.
const Unknown = "application/octet-stream"

// signatures are the first bytes of each type.
var signatures = []struct{ kind, start string }{
	{"image/png", "\x89PNG\r\n\x1a\n"},
	{"image/jpeg", "\xff\xd8\xff"},
	{"image/gif", "GIF87a"},
	{"image/gif", "GIF89a"},
	{"image/bmp", "BM"},
	{"application/pdf", "%PDF-"},
	{"application/gzip", "\x1f\x8b\x08"},
	{"application/zip", "PK\x03\x04"},
}

// Detect returns the type of data, or Unknown.
func Detect(data []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.start)) {
			return s.kind
		}
	}
	if len(data) >= 14 && string(data[:4]) == "RIFF" && string(data[8:14]) == "WEBPVP" {
		return "image/webp"
	}
	return Unknown
}
