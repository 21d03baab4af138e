//go:build !unix

package postgres

import (
	"errors"
	"os/exec"
)

// These stand for the signals of a server.
const (
	kill = iota
	pause
	resume
)

func lowerRights(*exec.Cmd) {}

func giveAway(string) error { return nil }

func (s *Server) signalAll(int) error { return errors.ErrUnsupported }
