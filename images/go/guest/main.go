//go:build linux

// Command guest is the first process of a container of the image go. Before anything else
// runs, it reports the wall that it sees around it. Then it either compiles the snippets of
// a session or runs a program that was compiled from them:
//
//	guest build
//	guest run [NAME=VALUE...]
//
// It is compiled in the image while that is built. So it imports only the standard library
// and the packages that are given to the image.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/rlmhq/rlm/internal/golang/guest/build"
	"github.com/rlmhq/rlm/internal/golang/guest/relay"
)

// endAtOnce is the argument of a process that ends at once: see tryUserNamespace.
const endAtOnce = "nothing"

// toolchain is where the image describes its toolchain: a build.Toolchain.
const toolchain = "/usr/lib/rlm/toolchain.json"

func main() { os.Exit(guest(os.Args[1:])) }

// guest does what its arguments say, and returns the exit code.
func guest(args []string) int {
	if len(args) == 1 && args[0] == endAtOnce {
		return 0
	}
	if err := serve(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}

	return 0
}

// serve attests and then does what the arguments ask for.
func serve(args []string) error {
	// No process inside can end the first process: a signal that is caught does nothing,
	// and the kernel passes no others on. Its memory and streams cannot be opened either.
	signal.Notify(make(chan os.Signal, 1))
	if err := forbidDumps(); err != nil {
		return err
	}

	seen, err := json.Marshal(attest())
	if err != nil {
		return err
	}
	if _, err := os.Stderr.Write(append(seen, '\n')); err != nil {
		return err
	}

	streams := struct {
		io.Reader
		io.Writer
	}{os.Stdin, os.Stdout}

	switch {
	case len(args) == 1 && args[0] == "build":
		return compile(streams)
	case len(args) > 0 && args[0] == "run":
		return relay.Run(streams, args[1:])
	}
	return fmt.Errorf("cannot parse the arguments %q", args)
}

// compile compiles sessions until the host is gone.
func compile(host io.ReadWriter) error {
	text, err := os.ReadFile(toolchain)
	if err != nil {
		return fmt.Errorf("cannot read the contents of the image: %w", err)
	}

	var has build.Toolchain
	if err := json.Unmarshal(text, &has); err != nil {
		return fmt.Errorf("cannot read the contents of the image: %w", err)
	}

	if build.Serve(host, &has) != 0 {
		return errors.New("cannot parse the host's message")
	}
	return nil
}

// forbidDumps keeps other processes of the same user from opening this one's memory and
// descriptors.
func forbidDumps() error {
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0)
	if errno != 0 {
		return fmt.Errorf("cannot protect the first process: %w", errno)
	}
	return nil
}
