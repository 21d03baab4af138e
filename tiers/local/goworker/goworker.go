// Package goworker makes package gobuild a worker of package jail. It is a package
// of its own so that little else is initialised in the jail.
package goworker

import (
	"os"

	"github.com/rlmhq/rlm/internal/gobuild"
	"github.com/rlmhq/rlm/internal/jail"
)

// Name is the worker's.
const Name = "local-go"

func init() {
	jail.Register(Name, func(conn *os.File) int { return gobuild.Serve(conn, nil) })
}
