//go:build linux && (amd64 || arm64)

package jail

import (
	"io"
	"os"
	"testing"
)

// everyday is ordinary use of Python's standard library.
const everyday = `
import asyncio, subprocess, threading, tempfile, multiprocessing, os, sys, signal, socket, ctypes
import sqlite3, time, select, mmap, shutil
async def main():
    await asyncio.sleep(0.01)
    p = await asyncio.create_subprocess_exec("/bin/echo", "child", stdout=subprocess.PIPE)
    assert (await p.communicate())[0] == b"child\n"
asyncio.run(main())
assert subprocess.run(["/bin/echo", "x"], capture_output=True).stdout == b"x\n"
out = []
threads = [threading.Thread(target=out.append, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert len(out) == 8
with tempfile.TemporaryDirectory() as d:
    open(d + "/f", "w").write("x"); shutil.copy(d + "/f", d + "/g")
    os.rename(d + "/g", d + "/h"); os.listdir(d)
    c = sqlite3.connect(d + "/db")
    c.execute("create table t(a)"); c.execute("insert into t values(1)"); c.commit(); c.close()
pid = os.fork()
if pid == 0: os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
try: os.kill(os.getpid(), signal.SIGINT); time.sleep(1); assert False
except KeyboardInterrupt: pass
for family in (socket.AF_INET, socket.AF_UNIX, socket.AF_NETLINK):
    try: socket.socket(family); assert False
    except PermissionError: pass
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
try: open("/etc/passwd"); assert False
except OSError: pass
mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANON).close()
ctypes.CDLL(None).getpid()
conn = socket.socket(fileno=3)
conn.sendall(b"fine\n")
`

func TestPythonLeadsANormalLife(t *testing.T) {
	requireFull(t)
	const python = "/usr/bin/python3"
	_, err := os.Stat(python)
	requireTier(t, err == nil, python)
	p := startJail(t, Config{
		Path:    python,
		Args:    []string{"python3", "-I", "-c", everyday},
		Env:     []string{"HOME=/sandbox", "LANG=C.UTF-8"},
		Profile: Programs,
		Binds:   systemBinds(),
	})
	said, err := io.ReadAll(p.Conn())
	if e := wait(t, p); err != nil || string(said) != "fine\n" || e.Code != 0 {
		t.Errorf("%q, %v, %v, it wrote %s", said, err, e, p.Output())
	}
}
