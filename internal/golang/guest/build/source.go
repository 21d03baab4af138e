package build

import "embed"

// Source is this package as images are built with it.
//
//go:embed ask.go build.go check.go compile.go names.go render.go source.go tool.go unit.go
var Source embed.FS
