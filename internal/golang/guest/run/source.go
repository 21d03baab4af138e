package run

import "embed"

// Source is the source code of this package, for building programs and images.
//
//go:embed inputs.go left.go link.go mistake.go names.go program.go source.go text.go
var Source embed.FS
