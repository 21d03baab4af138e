//go:build linux && (amd64 || arm64)

package jail

import (
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// plan is what the launcher tells the init and then the guest.
type plan struct {
	Config
	Class   Class
	Trees   []tree // Config.Binds and the devices, in the order to attach them
	UID     int    // of the guest, inside
	HostUID int
	Sample  bool              // the init watches the memory, for want of a cgroup
	Tasks   int               // that count against the limit of processes already
	HostNS  map[string]string // names of the launcher's namespaces
	FailAt  string            // for tests: the step that fails
}

// tree is a piece of the host that shows up in the jail.
type tree struct {
	Source string
	Target string
	FD     int // a detached mount, already restricted; 0: open Source
	Folder bool
	Write  bool
	Device bool
}

// has reports whether a layer is wanted.
func (p *plan) has(l Layers) bool {
	if p.Class == Nested {
		l &^= Namespaces | Mounts | Network
	}
	return l != 0 && p.Off&l == 0
}

// message is what a helper tells the launcher.
type message struct {
	Error       string       `json:"error,omitempty"`
	Layer       Layers       `json:"layer,omitempty"` // that the error is about
	Ready       bool         `json:"ready,omitempty"` // the init has built everything
	Done        int          `json:"done,omitempty"`  // the order with this number was carried out
	Exit        *exited      `json:"exit,omitempty"`
	Attestation *Attestation `json:"attestation,omitempty"`
}

// exited is the end of the guest.
type exited struct {
	Status unix.WaitStatus `json:"status"`
	Memory bool            `json:"memory"` // the init ended it for its memory
}

// order is what the launcher tells the init later.
type order struct {
	ID     int  `json:"id"`
	Signal int  `json:"signal,omitempty"` // to all but the init
	Keep   int  `json:"keep,omitempty"`   // kill all but the init and this process
	End    bool `json:"end,omitempty"`    // kill all and exit
}

// layerError is a layer that cannot be had.
type layerError struct {
	layer Layers
	err   error
}

func (e *layerError) Error() string {
	return fmt.Sprintf("cannot set up layer %s: %v", e.layer, e.err)
}

func (e *layerError) Unwrap() error { return e.err }

// layered says which layer an error belongs to.
func layered(l Layers, err error) error {
	if err == nil {
		return nil
	}
	return &layerError{layer: l, err: err}
}

// maxMessage is the size of the largest message between launcher and helpers.
const maxMessage = 128 << 10

// send tells the launcher something. It is for helpers.
func send(m any) error {
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

// receive reads what the launcher says. It is for helpers. The end of the
// launcher is an error.
func receive(m any) error {
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
