// Package mediatype detects the types of images and archives by their first bytes. The standard
// library's http.DetectContentType would link all of net/http into a program without a network.
package mediatype

import "bytes"

// Text is the type of data without control characters, and Unknown the type of other data.
const (
	Text    = "text/plain; charset=utf-8"
	Unknown = "application/octet-stream"
)

// signatures lists the first bytes of each type.
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
	if isText(data[:min(len(data), sniffed)]) {
		return Text
	}
	return Unknown
}

// sniffed is the number of bytes that decide whether data is text.
const sniffed = 512

// isText reports whether data has no byte that the MIME sniffing standard of WHATWG calls binary.
func isText(data []byte) bool {
	for _, b := range data {
		switch {
		case b == '\t', b == '\n', b == '\f', b == '\r', b == 0x1b:
		case b < 0x20:
			return false
		}
	}
	return true
}
