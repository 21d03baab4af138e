package local_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// reach is a snippet that prints "escaped" when it got what it wanted.
type reach struct {
	name, source string
	// without are the layers that keep it from that: with all of them left out
	// it does escape.
	without jail.Layers
}

// prelude has attempt, which judges an attack by what it returns, and raw system
// calls by their number on amd64 and on arm64.
const prelude = `import ctypes, os, platform, resource, signal, socket, subprocess, sys, time
FILE, DIR, OPEN, PORT, SOCKET, ABSTRACT, PID, HOST = %q, %q, %q, %d, %q, %q, %d, %q
try: os.chdir(OPEN) # a folder of the host where all may write
except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
def syscall(amd64, arm64, *args):
    args = (amd64 if platform.machine() == 'x86_64' else arm64, *args)
    return libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
def attempt(f):
    try:
        got = f()
    except BaseException as e:
        got = None
        print('contained:', type(e).__name__, e)
    print('escaped' if got else 'contained')
`

const (
	files = jail.Mounts | jail.Landlock | jail.Namespaces // a process namespace with the /proc of another has no way to list its threads
	wires = jail.Network | jail.Seccomp | jail.Landlock
	// unjailed is for what no layer contains: then the control is an interpreter
	// that this test starts by itself.
	unjailed jail.Layers = 1 << 16
)

// reaching attacks want something of the host.
var reaching = []reach{
	{"a file of the host", "attempt(lambda: 'canary' in open(FILE).read())", files},
	{"by os.open", "attempt(lambda: os.read(os.open(FILE, os.O_RDONLY), 10))", files},
	{"a folder of the host", "attempt(lambda: os.listdir(DIR))", files},
	{"upwards", "attempt(lambda: open('../' * 20 + FILE.lstrip('/')).read())", files},
	{"a symbolic link", "os.symlink(FILE, 'link')\nattempt(lambda: open('link').read())", files},
	{"a hard link", "attempt(lambda: os.link(FILE, 'hard') or open('hard').read())", files},
	{"by the root of itself", "attempt(lambda: open('/proc/self/root' + FILE).read())", files},
	{"by its working folder", "attempt(lambda: open('/proc/self/cwd/' + '../' * 20 + FILE.lstrip('/')).read())", files},
	{"by the root of a child", "p = subprocess.Popen(['sleep', '9'])\nattempt(lambda: os.listdir(f'/proc/{p.pid}/root' + DIR))\np.kill()", files},
	{"by a program", "attempt(lambda: subprocess.run(['cat', FILE], capture_output=True).stdout)", files},
	{"by mmap", "import mmap\nattempt(lambda: mmap.mmap(os.open(FILE, os.O_RDONLY), 0, prot=mmap.PROT_READ)[:6])", files},
	{"the users of the host", "attempt(lambda: open('/etc/passwd').read())", files},
	{"the groups of the host", "attempt(lambda: open('/etc/group').read())", files},
	{"devices", "attempt(lambda: os.open('/dev/full', os.O_RDONLY))", files},
	{"a device by mknod", "attempt(lambda: os.mknod('node', 0o600 | 0o020000, 0) or True)", files | jail.Seccomp},
	{"the kernel's settings", "attempt(lambda: open('/proc/sys/kernel/core_pattern').read())", files},
	{"the kernel's symbols", "attempt(lambda: open('/proc/kallsyms').read(10))", files},
	{"control groups", "attempt(lambda: os.listdir('/sys/fs/cgroup'))", files},
	{"writing to the host", "attempt(lambda: open(OPEN + '/written', 'w'))", files},
	{"deleting from the host", "attempt(lambda: os.remove(OPEN + '/doomed') or True)", files},
	{"a program of its own", "open('p', 'w').write('#!/bin/sh\\necho yes')\nos.chmod('p', 0o755)\nattempt(lambda: subprocess.run(['./p'], capture_output=True).stdout)", files},
	{"a set-user-ID program", "attempt(lambda: b'euid=0' in subprocess.run([DIR + '/suid'], capture_output=True).stdout)", files | jail.Seccomp | jail.Privileges},
	{"becoming root", "def root():\n    pid = os.getuid()\n    if syscall(272, 97, 0x10000000) != 0: raise OSError(ctypes.get_errno(), 'unshare')\n    open('/proc/self/uid_map', 'w').write(f'0 {pid} 1')\n    os.setuid(0)\n    return os.getuid() == 0\nattempt(root)", files | jail.Seccomp | jail.Privileges},
	{"the environment of the host", "attempt(lambda: 'RLM_HOSTILE' in os.environ)", unjailed},
	{"environments in /proc", "import glob\ndef look():\n    for p in glob.glob('/proc/[0-9]*/environ'):\n        try:\n            if b'RLM_HOSTILE' in open(p, 'rb').read(): return True\n        except OSError: pass\nattempt(look)", unjailed},
	{"processes of the host", "attempt(lambda: os.path.exists(f'/proc/{PID}'))", files},
	{"a signal to the host", "def f():\n    try: os.kill(PID, 0)\n    except ProcessLookupError: return False\n    except PermissionError: return PID > 200\n    return True\nattempt(f)", files},
	{"the name of the host", "attempt(lambda: os.uname().nodename == HOST)", jail.Namespaces | jail.Mounts | jail.Network},
	{"a listener on loopback", "attempt(lambda: socket.create_connection(('127.0.0.1', PORT), 2))", wires},
	{"a listener by a child", "attempt(lambda: b'in' in subprocess.run(['bash', '-c', f'exec 9<>/dev/tcp/127.0.0.1/{PORT} && echo in'], capture_output=True).stdout)", wires},
	{"an abstract socket", "s = lambda: socket.socket(socket.AF_UNIX)\nattempt(lambda: s().connect('\\0' + ABSTRACT) or True)", wires},
	{"a socket of the file system", "s = lambda: socket.socket(socket.AF_UNIX)\nattempt(lambda: s().connect(SOCKET) or True)", files | wires},
	{"datagrams", "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT)))", wires},
	{"all families of sockets", "def any_family():\n    for family in range(1, 46):\n        for kind in (1, 2, 3, 5):\n            try: return socket.socket(family, kind)\n            except OSError: pass\nattempt(any_family)", jail.Seccomp},
	{"names", "attempt(lambda: socket.getaddrinfo('localhost', 80))", files | wires},
	{"ptrace", "attempt(lambda: syscall(101, 117, 0, 0, 0, 0) == 0)", jail.Seccomp},
	{"ptrace of another process", "p = subprocess.Popen(['sleep', '9'])\nattempt(lambda: syscall(101, 117, 16, p.pid, 0, 0) == 0)\np.kill()", jail.Seccomp},
	{"memory of another process", "pid = os.fork()\nif pid == 0:\n    time.sleep(9)\n    os._exit(0)\nb = ctypes.create_string_buffer(64)\nv = (ctypes.c_void_p * 2)(ctypes.addressof(b), 64)\nattempt(lambda: syscall(310, 270, pid, v, 1, v, 1, 0) == 64)\nos.kill(pid, 9)", jail.Seccomp},
	{"a user namespace", "attempt(lambda: syscall(272, 97, 0x10000000) == 0)", jail.Seccomp},
	{"a file in memory", "attempt(lambda: syscall(319, 279, b'x', 0) >= 0)", jail.Seccomp},
	{"keys of the kernel", "attempt(lambda: syscall(248, 217, b'user', b'x', b'y', 1, -1) > 0)", jail.Seccomp},
	{"io_uring", "attempt(lambda: syscall(425, 425, 4, ctypes.create_string_buffer(256)) >= 0)", jail.Seccomp | jail.Rlimits},
	{"another personality", "attempt(lambda: syscall(135, 92, 0x0040000) != -1)", jail.Seccomp},
	{"mounting", "attempt(lambda: libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0)", jail.Seccomp | jail.Landlock | jail.Privileges},
	{"changing the root", "attempt(lambda: syscall(272, 97, 0x10000000) == 0 and (os.chroot('/tmp') or True))", jail.Seccomp},
	{"limits of the init", "attempt(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (8, 8)))", jail.Seccomp},
	{"higher limits", "attempt(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000)) or True)", jail.Rlimits},
	{"many open files", "attempt(lambda: [os.open('/dev/null', os.O_RDONLY) for _ in range(1000)])", jail.Rlimits},
	{"many processes", "def many():\n    for _ in range(300):\n        if os.fork() == 0:\n            time.sleep(2)\n            os._exit(0)\n    return True\nattempt(many)", jail.Rlimits | jail.Cgroup},
	{"many threads", "import threading\nthreading.stack_size(64 << 10)\ndef many():\n    for _ in range(300): threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n    return True\nattempt(many)", jail.Rlimits | jail.Cgroup},
	{"shared memory", "import mmap\nm = mmap.mmap(-1, 1200 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1\nprint('escaped')", jail.Cgroup},
	{"a full disk", "def fill():\n    for i in range(3):\n        with open(f'f{i}', 'wb') as f: f.write(bytes(30 << 20))\n    return True\nattempt(fill)", files},
	{"inodes without end", "attempt(lambda: [open(f'i{i}', 'w').close() for i in range(5000)])", files},
}

func TestHostileReach(t *testing.T) {
	where := canaries(t)
	tier := usual(t)
	for _, a := range reaching {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			b := box(t, tier, tiers.Config{Limits: tiers.Limits{Wall: 20 * time.Second}})
			r := run(t, b, where+a.source)
			if strings.Contains(r.Stdout, "escaped") {
				t.Errorf("not contained: %s", r.Stdout)
			}
			alive(t, b)
		})
	}
}

// TestHostileReachWithoutLayers shows that the attacks are what they seem: they
// succeed when their layer is off.
func TestHostileReachWithoutLayers(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("without layers a Python is needed that all users can reach: there is no /usr/bin/python3")
	}
	where := canaries(t)
	for _, a := range reaching {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(a.source, "'/suid'") && os.Geteuid() != 0 {
				t.Skip("only root can make a program that belongs to root")
			}
			if a.without == unjailed {
				_, said := tiertest.BarePython(t, "/usr/bin/python3", where+a.source, 20*time.Second, "RLM_HOSTILE=canary")
				if !strings.Contains(said, "escaped") {
					t.Errorf("contained without a jail: %s", said)
				}
				return
			}
			tier := newTier(t, local.Options{Python: "/usr/bin/python3", Warm: -1})
			tier.Without(a.without)
			b := box(t, tier, tiers.Config{Limits: tiers.Limits{Wall: 20 * time.Second}})
			if r := run(t, b, where+a.source); !strings.Contains(r.Stdout, "escaped") {
				t.Errorf("contained even without %s: %s %q %q", a.without, r.Status, r.Stdout, r.Stderr)
			}
		})
	}
}

func alive(t *testing.T, b tiers.Sandbox) {
	t.Helper()
	if r := run(t, b, "print('alive')"); r.Stdout != "alive\n" || r.Lost != nil {
		t.Errorf("the session does not go on: %s %q %q %+v %+v", r.Status, r.Stdout, r.Stderr, r.Exception, r.Lost)
	}
}

// canaryFolder makes a folder of the host with a file that all may read and
// write, a folder where all may write, and a program of root's.
func canaryFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "rlm-canary") //nolint:usetesting // not below /tmp, which every jail hides
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file, open := filepath.Join(dir, "file"), filepath.Join(dir, "open")
	//nolint:gosec // all of it shall be within reach
	err = errors.Join(
		os.Chmod(dir, 0o755), os.WriteFile(file, []byte("canary"), 0o600), os.Chmod(file, 0o666),
		os.Mkdir(open, 0o755), os.Chmod(open, 0o777), os.WriteFile(filepath.Join(open, "doomed"), nil, 0o600),
	)
	if id, missing := os.ReadFile("/usr/bin/id"); missing == nil && os.Geteuid() == 0 {
		suid := filepath.Join(dir, "suid")
		err = errors.Join(err, os.WriteFile(suid, id, 0o755), os.Chmod(suid, 0o755|os.ModeSetuid)) //nolint:gosec // it can show who runs it, nothing else
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// canaries puts out what an attack looks for and returns the prelude that says
// where it is.
func canaries(t *testing.T) string {
	t.Helper()
	dir := canaryFolder(t)
	file, open := filepath.Join(dir, "file"), filepath.Join(dir, "open")
	socket, abstract := filepath.Join(dir, "socket"), fmt.Sprintf("rlm-hostile-%d", os.Getpid())
	port := 0
	for _, address := range [][2]string{{"tcp", "127.0.0.1:0"}, {"unix", socket}, {"unix", "@" + abstract}} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), address[0], address[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			port = tcp.Port
		}
	}
	if err := os.Chmod(socket, 0o777); err != nil { //nolint:gosec // as above
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(prelude, file, dir, open, port, socket, abstract, os.Getpid(), host)
}
