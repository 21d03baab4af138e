// Package gopipes holds the outputs of a compiled Go session: two pipes, so that
// what a program wrote is there even if it died at once. Whoever watches the
// program reads them: tier local on the host, or the first process of a container.
//
// It is compiled into a container's image as well, so it may import nothing but the
// standard library.
package gopipes

import "embed"

// Source is this package as an image is made with it.
//
//go:embed gopipes.go gopipes_linux.go gopipes_other.go
var Source embed.FS

// Sink takes a part of stream 0, standard output, or 1, standard error. The text is
// valid until it returns.
type Sink func(stream int, text []byte)
