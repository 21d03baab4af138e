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

// handshake leads the init and the guest to the point where the guest starts.
func (p *Process) handshake() error {
	deadline := time.Now().Add(startTimeout)
	if err := errors.Join(p.control.SetDeadline(deadline), p.gate.SetDeadline(deadline)); err != nil {
		return err
	}
	_, err := p.ask(p.control, p.plan, "the init")
	if err != nil {
		return err
	}
	if p.plan.Proxy && p.proxy == nil {
		return layered(Network, errors.New("the init sent no listener"))
	}
	m, err := p.ask(p.gate, p.plan, "the guest")
	if err != nil {
		return err
	}
	if m.Attestation == nil {
		return errors.New("the guest did not attest")
	}
	p.attestation = *m.Attestation
	p.attestation.Layers = append(p.attestation.Layers, p.cgroupState())
	if err := p.verify(); err != nil {
		return err
	}
	if err := p.plan.fail("go"); err != nil {
		return err
	}
	if err := put(p.gate, order{ID: 1}); err != nil {
		return fmt.Errorf("cannot let the guest start: %w", err)
	}
	_ = p.gate.Close() // it has been read to its end
	return p.control.SetDeadline(time.Time{})
}

// ask sends the plan to a helper and returns its answer.
func (p *Process) ask(c *net.UnixConn, question any, who string) (message, error) {
	if err := put(c, question); err != nil {
		return message{}, fmt.Errorf("cannot tell %s its plan: %w", who, err)
	}
	var m message
	file, err := get(c, &m)
	if err != nil {
		return message{}, fmt.Errorf("%s ended before it was ready: %w", who, err)
	}
	if file != nil {
		p.proxy, err = net.FileListener(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return message{}, layered(Network, fmt.Errorf("cannot use the guest's listener: %w", err))
		}
	}
	if m.Error != "" && m.Layer != 0 {
		return message{}, layered(m.Layer, errors.New(m.Error))
	}
	if m.Error != "" {
		return message{}, errors.New(m.Error)
	}
	return m, nil
}

// verify compares the attestation with what the class promises, and what can
// be seen from outside with what was asked for.
func (p *Process) verify() error {
	a := p.attestation
	promised := Layers(1<<allLayers-1) &^ Cgroup &^ p.plan.Off
	if p.plan.Class == Nested {
		promised &^= nestable
	}
	for _, l := range []Layers{Namespaces, Mounts, Network, Privileges, Landlock, Seccomp, Rlimits} {
		if promised&l != 0 && !a.On(l) {
			return layered(l, errors.New("the guest does not attest it"))
		}
	}
	if a.Class != p.plan.Class || a.UID != p.plan.UID {
		return layered(Privileges, fmt.Errorf("the guest is user %d in class %s", a.UID, a.Class))
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return fmt.Errorf("the init is gone: %w", err)
	}
	want := fmt.Sprintf("\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", p.plan.HostUID)
	if !strings.Contains(string(status), want) {
		return layered(Privileges, fmt.Errorf("the init does not run as user %d", p.plan.HostUID))
	}
	return nil
}

// cgroupState describes the layer that the launcher can see best.
func (p *Process) cgroupState() LayerState {
	s := LayerState{Name: Cgroup.String()}
	switch {
	case p.cgroup != nil:
		var names []string
		for name := range p.cgroup.dirs {
			names = append(names, name)
		}
		slices.Sort(names)
		s.On, s.Mechanism = true, fmt.Sprintf("version %d: %s", p.cgroup.version, strings.Join(names, ", "))
	case p.noCgroup != nil:
		s.Why = p.noCgroup.Error() + "; memory is sampled instead"
	default:
		s.Why = p.plan.whyOff(Cgroup)
	}
	return s
}

// put writes one message.
func put(c *net.UnixConn, m any) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("arguments and environment take %d bytes, more than %d", len(data), maxMessage)
	}
	_, err = c.Write(data)
	return err
}

// get reads one message, and the file that came with it.
func get(c *net.UnixConn, m any) (*os.File, error) {
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
			return nil, errors.New("a message came with something that is no file")
		}
		fds, err := unix.ParseUnixRights(&control[0])
		if err != nil || len(fds) != 1 {
			return nil, errors.New("a message came with something that is no file")
		}
		file = os.NewFile(uintptr(fds[0]), "proxy")
	}
	return file, json.Unmarshal(buf[:n], m)
}
