package run

import "embed"

// Source is this package as programs and images are built with it.
//
//go:embed inputs.go link.go mistake.go names.go program.go source.go text.go
var Source embed.FS
