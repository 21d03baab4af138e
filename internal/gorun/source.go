package gorun

import "embed"

// Source is this package as a program is compiled with it, but for this file, which
// only images need.
//
//go:embed link.go names.go run.go source.go wire.go
var Source embed.FS
