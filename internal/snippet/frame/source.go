package frame

import "embed"

// Source is this package as an image is made with it.
//
//go:embed buffer.go frame.go json.go source.go
var Source embed.FS
