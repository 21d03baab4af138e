package frame

import "embed"

// Source is the source code of this package, for building images.
//
//go:embed buffer.go frame.go json.go source.go
var Source embed.FS
