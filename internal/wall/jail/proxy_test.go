//go:build linux && (amd64 || arm64)

package jail

import (
	"io"
	"os"
	"testing"
)

// viaProxy is a program that reports what a guest can connect to.
const viaProxy = `
import socket
def connect(family, address, kind=socket.SOCK_STREAM):
    try:
        s = socket.socket(family, kind)
        s.settimeout(5)
        s.connect(address)
        return s
    except OSError as e:
        return type(e).__name__
s = connect(socket.AF_INET, ("127.0.0.1", 3128))
s.sendall(b"hello\n")
print(s.recv(100))
out = socket.socket(fileno=3)
for family, address in [
    (socket.AF_INET, ("127.0.0.1", 3129)), (socket.AF_INET, ("127.0.0.2", 3128)),
    (socket.AF_INET, ("192.0.2.1", 3128)), (socket.AF_INET, ("192.0.2.1", 80)),
    (socket.AF_INET6, ("::1", 3128)), (socket.AF_UNIX, "/tmp/x"), (socket.AF_UNIX, "\0x"),
]:
    got = connect(family, address)
    said = f"{address!r} {got}" if isinstance(got, str) else f"REACHED {address}"
    out.sendall(said.encode() + b"\n")
for kind, protocol in [
    (socket.SOCK_DGRAM, 0), (socket.SOCK_RAW, 1), (socket.SOCK_STREAM, 6), (socket.SOCK_STREAM, 262),
]:
    try:
        socket.socket(socket.AF_INET, kind, protocol)
        out.sendall(f"{kind:d} {protocol} made\n".encode())
    except OSError as e:
        out.sendall(f"{kind:d} {protocol} {type(e).__name__}\n".encode())
for what in ("bind", "listen"):
    try:
        s = socket.socket(socket.AF_INET)
        s.bind(("127.0.0.1", 4000)) if what == "bind" else s.listen()
        out.sendall(b"REACHED " + what.encode() + b"\n")
    except OSError as e:
        out.sendall(f"{what} {type(e).__name__}\n".encode())
`

// TestTheProxyIsAllThereIs checks that the guest reaches the listener served by the launcher, and
// nothing else.
func TestTheProxyIsAllThereIs(t *testing.T) {
	requireFull(t)
	const python = "/usr/bin/python3"
	_, err := os.Stat(python)
	requireTier(t, err == nil, python)
	p := startJail(t, Config{
		Path:    python,
		Args:    []string{"python3", "-I", "-c", viaProxy},
		Env:     []string{"HOME=/sandbox", "LANG=C.UTF-8"},
		Profile: Programs,
		Binds:   systemBinds(),
		Proxy:   true,
	})
	if !p.Attestation().holds(Network | Seccomp | Landlock) {
		t.Errorf("%+v", p.Attestation())
	}
	conn, err := p.Proxy().Accept()
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(conn, line); err != nil || string(line) != "hello\n" {
		t.Errorf("%q %v", line, err)
	}
	if _, err := io.WriteString(conn, "welcome"); err != nil {
		t.Error(err)
	}
	_ = conn.Close()
	said, err := io.ReadAll(p.Conn())
	want := `('127.0.0.1', 3129) PermissionError
('127.0.0.2', 3128) ConnectionRefusedError
('192.0.2.1', 3128) OSError
('192.0.2.1', 80) PermissionError
('::1', 3128) PermissionError
'/tmp/x' PermissionError
'\x00x' PermissionError
2 0 PermissionError
3 1 PermissionError
1 6 made
1 262 PermissionError
bind PermissionError
listen PermissionError
`
	if e := wait(t, p); err != nil || string(said) != want || e.Code != 0 {
		t.Errorf("%s, %v, %v, it wrote %s", said, err, e, p.Output())
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if _, err := p.Proxy().Accept(); err == nil {
		t.Error("the listener outlives the jail")
	}
}

func TestAProxyNeedsANetworkOfItsOwn(t *testing.T) {
	program := Config{Path: "/bin/true", Args: []string{"true"}, Profile: Programs, Proxy: true}
	weaker, shared := program, program
	weaker.MinClass, shared.Off = Nested, Network

	for name, c := range map[string]Config{
		"another profile": {Worker: "nothing", Proxy: true},
		"a weaker class":  weaker,
		"no network":      shared,
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := Start(t.Context(), c); err == nil {
				t.Errorf("%s: it starts", name)
				_ = p.Kill()
			}
		})
	}
}
