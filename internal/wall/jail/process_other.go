//go:build !linux || !(amd64 || arm64)

package jail

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
)

// Process is a running jail. This system has no jails.
type Process struct{}

func unsupported() error {
	return fmt.Errorf("cannot start a jail on %s/%s: jails need Linux on amd64 or arm64",
		runtime.GOOS, runtime.GOARCH)
}

// Register does nothing.
func Register(string, func(conn *os.File) int) {}

// Start returns an error.
func Start(context.Context, Config) (*Process, error) { return nil, unsupported() }

// Probe reports that this system has no jails.
func Probe(context.Context) Report {
	return Report{Advice: []string{"use another tier: " + unsupported().Error()}}
}

// Conn returns nil.
func (*Process) Conn() net.Conn { return nil }

// Proxy returns nil.
func (*Process) Proxy() net.Listener { return nil }

// Output returns nil.
func (*Process) Output() []byte { return nil }

// Attestation returns the zero value.
func (*Process) Attestation() Attestation { return Attestation{} }

// Signal returns an error.
func (*Process) Signal(context.Context, syscall.Signal) error { return unsupported() }

// KillExcept returns an error.
func (*Process) KillExcept(context.Context, int) error { return unsupported() }

// Kill returns an error.
func (*Process) Kill() error { return unsupported() }

// Wait returns an error.
func (*Process) Wait(context.Context) (Exit, error) { return Exit{}, unsupported() }

// OOM returns false.
func (*Process) OOM() bool { return false }

// Usage returns the zero value.
func (*Process) Usage() Usage { return Usage{} }

// SetMemory returns an error.
func (*Process) SetMemory(context.Context, int64) error { return unsupported() }

// Memory returns 0.
func (*Process) Memory() int64 { return 0 }
