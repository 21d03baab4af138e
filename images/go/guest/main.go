//go:build linux

// Command guest is the first process of a container of the image go. It says what
// wall it sees around it, before anything else runs, and then either compiles the
// snippets of a session or runs a program that was compiled from them:
//
//	guest build
//	guest run PROGRAM [NAME=VALUE...]
//
// It is compiled in the image while that is built, so it imports nothing but the
// standard library and the packages that are given to the image.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/rlmhq/rlm/internal/gobuild"
	"github.com/rlmhq/rlm/internal/gorelay"
)

// nothing is the argument of a process that ends at once: see refusedToChild.
const nothing = "nothing"

// toolchain is where the image describes its toolchain: a gobuild.Toolchain.
const toolchain = "/usr/lib/rlm/toolchain.json"

func main() { os.Exit(guest(os.Args[1:])) }

// guest does what its arguments say, and returns the exit code.
func guest(args []string) int {
	if len(args) == 1 && args[0] == nothing {
		return 0
	}
	if err := serve(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serve(args []string) error {
	// Nobody inside can end the first process: what is caught does nothing, and the
	// kernel lets nothing else through. Nor can its memory and streams be opened.
	signal.Notify(make(chan os.Signal, 1))
	if err := undumpable(); err != nil {
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
		return build(streams)
	case len(args) > 1 && args[0] == "run":
		return gorelay.Run(streams, gorelay.Program{Path: args[1], Dir: "/sandbox", Env: args[2:]})
	}
	return fmt.Errorf("cannot understand the arguments %q", args)
}

// build compiles sessions until the host is gone.
func build(host io.ReadWriter) error {
	text, err := os.ReadFile(toolchain)
	if err != nil {
		return fmt.Errorf("cannot read what is in the image: %w", err)
	}
	var has gobuild.Toolchain
	if err := json.Unmarshal(text, &has); err != nil {
		return fmt.Errorf("cannot read what is in the image: %w", err)
	}
	if gobuild.Serve(host, &has) != 0 {
		return errors.New("cannot understand the host")
	}
	return nil
}

// undumpable keeps other processes of the same user from opening this one's memory
// and descriptors.
func undumpable() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return fmt.Errorf("cannot protect the first process: %w", errno)
	}
	return nil
}
