package gotool

import "embed"

// Source is this package as an image is made with it.
//
//go:embed gotool.go source.go
var Source embed.FS
