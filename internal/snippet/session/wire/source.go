package wire

import "embed"

// Source is this package as programs and images are built with it.
//
//go:embed wire.go source.go
var Source embed.FS
