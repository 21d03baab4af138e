package wire

import "embed"

// Source is the source code of this package, for building programs and images.
//
//go:embed wire.go source.go
var Source embed.FS
