package gorun

import "embed"

// Source is this package as a program is compiled with it.
//
//go:embed link.go names.go run.go wire.go
var Source embed.FS
