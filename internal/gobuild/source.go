package gobuild

import "embed"

// Source is this package as an image is made with it.
//
//go:embed ask.go build.go check.go names.go render.go source.go unit.go
var Source embed.FS
