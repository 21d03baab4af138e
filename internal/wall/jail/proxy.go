//go:build linux && (amd64 || arm64)

package jail

import (
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// describeNetwork describes the guest's network.
func describeNetwork(p *plan) string {
	if p.Proxy {
		return fmt.Sprintf("network namespace with only the proxy, on 127.0.0.1:%d", ProxyPort)
	}
	return "empty network namespace"
}

// listenForProxy creates the only listener of the jail's network. The init creates it and sends it
// to the launcher, which serves the connections of the guest.
func listenForProxy() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("cannot make a socket: %w", err)
	}

	err = switchLoopbackOn(fd)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: ProxyPort})
	}
	if err == nil {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("cannot listen for the proxy: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// switchLoopbackOn enables the loopback device, which is disabled in a new network.
func switchLoopbackOn(socket int) error {
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request); err != nil {
		return fmt.Errorf("cannot find loopback: %w", err)
	}

	request.SetUint16(request.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("cannot switch loopback on: %w", err)
	}
	return nil
}

// reportReady tells the launcher that the jail is built, and sends the listener.
func (in *initProcess) reportReady() error {
	m := message{Ready: true}
	if !in.plan.Proxy {
		return sendToLauncher(m)
	}

	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	for {
		err = unix.Sendmsg(launcherFD, data, unix.UnixRights(in.proxy), nil, 0)
		if !errors.Is(err, unix.EINTR) {
			return errors.Join(err, unix.Close(in.proxy))
		}
	}
}
