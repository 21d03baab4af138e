package build

import "embed"

// Source is the source code of this package, for building images.
//
//go:embed ask.go build.go check.go compile.go names.go render.go source.go tool.go unit.go
var Source embed.FS
