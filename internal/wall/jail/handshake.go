//go:build linux && (amd64 || arm64)

package jail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// handshake leads the init and the guest up to the guest's start.
func (p *Process) handshake() error {
	deadline := time.Now().Add(startTimeout)
	err := errors.Join(p.control.SetDeadline(deadline), p.gate.SetDeadline(deadline))
	if err != nil {
		return err
	}

	if _, err := p.sendPlan(p.control, "the init"); err != nil {
		return err
	}
	if p.plan.Proxy && p.proxy == nil {
		return inLayer(Network, errors.New("the init sent no listener"))
	}

	m, err := p.sendPlan(p.gate, "the guest")
	if err != nil {
		return err
	}
	if m.Attestation == nil {
		return errors.New("the guest sent no attestation")
	}
	p.attestation = *m.Attestation
	p.attestation.Layers = append(p.attestation.Layers, p.describeCgroup())
	if err := p.checkAttestation(); err != nil {
		return err
	}

	return p.releaseGuest()
}

// releaseGuest lets the guest start.
func (p *Process) releaseGuest() error {
	if err := p.plan.failAt("go"); err != nil {
		return err
	}
	if err := writeMessage(p.gate, order{ID: 1}); err != nil {
		return fmt.Errorf("cannot let the guest start: %w", err)
	}
	_ = p.gate.Close() // everything has been read
	return p.control.SetDeadline(time.Time{})
}

// sendPlan sends the plan to a helper and returns its answer.
func (p *Process) sendPlan(c *net.UnixConn, helper string) (message, error) {
	if err := writeMessage(c, p.plan); err != nil {
		return message{}, fmt.Errorf("cannot send the plan to %s: %w", helper, err)
	}

	var m message
	file, err := readMessage(c, &m)
	if err != nil {
		return message{}, fmt.Errorf("%s ended before it was ready: %w", helper, err)
	}
	if file != nil {
		p.proxy, err = net.FileListener(file)
		if err = errors.Join(err, file.Close()); err != nil {
			err = fmt.Errorf("cannot use the guest's listener: %w", err)
			return message{}, inLayer(Network, err)
		}
	}

	switch {
	case m.Error != "" && m.Layer != 0:
		return message{}, inLayer(m.Layer, errors.New(m.Error))
	case m.Error != "":
		return message{}, errors.New(m.Error)
	}
	return m, nil
}

// checkAttestation compares the attestation with the promises of the class, and the facts that are
// visible from outside with the request.
func (p *Process) checkAttestation() error {
	a := p.attestation
	promised := Layers(1<<allLayers-1) &^ Cgroup &^ p.plan.Off
	if p.plan.Class == Nested {
		promised &^= nestable
	}
	for i := range allLayers {
		if l := Layers(1 << i); promised&l != 0 && !a.holds(l) {
			return inLayer(l, errors.New("the guest does not attest this layer"))
		}
	}
	if a.Class != p.plan.Class || a.UID != p.plan.UID {
		return inLayer(Privileges, fmt.Errorf(
			"the guest runs as user %d in class %s, not as user %d in class %s",
			a.UID, a.Class, p.plan.UID, p.plan.Class,
		))
	}

	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return fmt.Errorf("the init process has ended: %w", err)
	}
	want := fmt.Sprintf("\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", p.plan.HostUID)
	if !strings.Contains(string(status), want) {
		return inLayer(Privileges, fmt.Errorf("the init does not run as user %d", p.plan.HostUID))
	}
	return nil
}

// describeCgroup describes the only layer about which the launcher has better information than the
// guest.
func (p *Process) describeCgroup() LayerState {
	s := LayerState{Name: Cgroup.String()}
	switch {
	case p.cgroup != nil:
		var names []string
		for name := range p.cgroup.dirs {
			names = append(names, name)
		}
		slices.Sort(names)

		s.On = true
		s.Mechanism = fmt.Sprintf("version %d: %s", p.cgroup.version, strings.Join(names, ", "))
	case p.noCgroup != nil:
		s.Why = p.noCgroup.Error() + "; memory can only be sampled"
	default:
		s.Why = p.plan.whyOff(Cgroup)
	}
	return s
}

// writeMessage writes one message.
func writeMessage(c *net.UnixConn, m any) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("arguments and environment take %d bytes, more than %d",
			len(data), maxMessage)
	}
	_, err = c.Write(data)
	return err
}

// errNoFile reports a message whose attachment is not exactly one file.
var errNoFile = errors.New("a message contained something other than a file")

// readMessage reads one message, and the file attached to it, if any.
func readMessage(c *net.UnixConn, m any) (*os.File, error) {
	buf, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	n, nr, _, _, err := c.ReadMsgUnix(buf, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return nil, err
	}

	var file *os.File
	if nr > 0 {
		control, err := unix.ParseSocketControlMessage(rights[:nr])
		if err != nil || len(control) != 1 {
			return nil, errNoFile
		}
		fds, err := unix.ParseUnixRights(&control[0])
		if err != nil || len(fds) != 1 {
			return nil, errNoFile
		}
		file = os.NewFile(uintptr(fds[0]), "proxy")
	}
	return file, json.Unmarshal(buf[:n], m)
}
