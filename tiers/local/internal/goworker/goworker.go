// Package goworker registers the compiler and the relay of Go sessions as workers of package
// jail. It is a separate package so that a worker initialises little else.
package goworker

import (
	"fmt"
	"os"

	"github.com/rlmhq/rlm/internal/golang/guest/build"
	"github.com/rlmhq/rlm/internal/golang/guest/relay"
	"github.com/rlmhq/rlm/internal/wall/jail"
)

// The names of the workers.
const (
	Compiler = "local-go-compiler"
	Relay    = "local-go-relay"
)

func init() {
	jail.Register(Compiler, func(conn *os.File) int { return build.Serve(conn, nil) })
	jail.Register(Relay, func(conn *os.File) int {
		if err := relay.Run(conn, nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	})
}
