//go:build linux && (amd64 || arm64)

package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// plan is the launcher's message to the init and then to the guest.
type plan struct {
	Config
	Class   Class
	Trees   []tree // Config.Binds and the devices, in the order of attachment
	UID     int    // the guest's UID, inside
	HostUID int
	Sample  bool              // the init watches the memory for lack of a cgroup
	Tasks   int               // tasks that already count towards the limit of processes
	HostNS  map[string]string // names of the launcher's namespaces
	FailAt  string            // for tests: the step that must fail
}

// tree is a file or folder of the host that appears in the jail.
type tree struct {
	Source    string
	Target    string
	FD        int // a detached mount, already restricted; 0: open Source
	Folder    bool
	HasMounts bool // other mounts are below Source
	Write     bool
	Device    bool
}

// scratch returns the folders that the guest may write to, one tmpfs each.
func (p *plan) scratch() []string { return slices.Concat(scratch, p.Scratch) }

// wants reports whether the plan includes a layer.
func (p *plan) wants(l Layers) bool {
	if p.Class == Nested {
		l &^= Namespaces | Mounts | Network
	}
	return l != 0 && p.Off&l == 0
}

// errInjected is the failure of a step chosen by a test.
var errInjected = errors.New("injected failure")

// failAt returns an error at the step that a test chose.
func (p *plan) failAt(step string) error {
	if p.FailAt != step {
		return nil
	}
	return fmt.Errorf("%w at %s", errInjected, step)
}

// message is a message from a helper to the launcher.
type message struct {
	Error       string       `json:"error,omitempty"`
	Layer       Layers       `json:"layer,omitempty"`    // the subject of the error
	Ready       bool         `json:"ready,omitempty"`    // the init has built everything
	Done        int          `json:"done,omitempty"`     // the order with this number is done
	Outgrown    bool         `json:"outgrown,omitempty"` // the init is killing all processes for lack of memory
	Exit        *exited      `json:"exit,omitempty"`
	Attestation *Attestation `json:"attestation,omitempty"`
}

// exited is the end of the guest.
type exited struct {
	Status unix.WaitStatus `json:"status"`
	Memory bool            `json:"memory"` // the init killed it for lack of memory
}

// order is a later message from the launcher to the init.
type order struct {
	ID     int   `json:"id"`
	Signal int   `json:"signal,omitempty"` // to all processes except the init
	Keep   int   `json:"keep,omitempty"`   // kill all processes except the init, the guest and this one
	Memory int64 `json:"memory,omitempty"` // new limit of the jail, in bytes, if the init samples the memory
	End    bool  `json:"end,omitempty"`    // kill all processes and exit
}

// layerError reports a layer that this machine cannot provide.
type layerError struct {
	layer Layers
	err   error
}

func (e *layerError) Error() string {
	return fmt.Sprintf("cannot set up layer %s: %v", e.layer, e.err)
}

func (e *layerError) Unwrap() error { return e.err }

// inLayer adds the layer to an error. A nil error stays nil.
func inLayer(l Layers, err error) error {
	if err == nil {
		return nil
	}
	return &layerError{layer: l, err: err}
}

// describeError puts an error into a message, together with its layer.
func describeError(err error) message {
	if l, ok := errors.AsType[*layerError](err); ok {
		return message{Error: l.err.Error(), Layer: l.layer}
	}
	return message{Error: err.Error()}
}

// maxMessage is the longest message between launcher and helpers, in bytes.
const maxMessage = 128 << 10

// sendToLauncher sends a message from a helper.
func sendToLauncher(m any) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}

	for {
		_, err = unix.Write(launcherFD, data)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// receiveFromLauncher reads a message from the launcher in a helper. It returns an error if the
// launcher has ended.
func receiveFromLauncher(m any) error {
	buf := make([]byte, maxMessage)
	for {
		n, err := unix.Read(launcherFD, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}

		if n <= 0 {
			return unix.EPIPE
		}
		return json.Unmarshal(buf[:n], m)
	}
}
