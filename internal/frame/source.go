package frame

import "embed"

// Source is this package as an image is made with it.
//
//go:embed frame.go source.go
var Source embed.FS
