# The first process of a container. It attests the wall before any other code runs and lets
# its child load the runtime. From then on, it only signals processes on the host's order and
# reaps those that have ended.
import fcntl
import json
import mmap
import os
import resource
import select
import signal
import socket
from time import sleep  # not the runtime's later one, which waits on the host


def refused(action, *args):
    """The error with which the kernel refuses an action, 0 if it allows it."""
    try:
        result = action(*args)
    except OSError as error:
        return error.errno
    if isinstance(result, int) and result > 2:
        os.close(result)
    elif hasattr(result, "close"):
        result.close()
    return 0


def refused_to_child(action, *args):
    """The same for an action that would change this process."""
    pid = os.fork()
    if pid == 0:
        os._exit(refused(action, *args))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def attest():
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    with open("/proc/self/mountinfo") as file:
        mounts = {}
        for line in file:
            fields = line.split()
            mounts[unescaped(fields[4])] = fields[5].split(",")
    mounts = {k: v for k, v in mounts.items() if not k.startswith(("/proc/", "/sys/", "/dev/")) or k == "/dev/shm"}
    return {
        "status": {k: status.get(k, "") for k in (
            "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")},
        "pid": os.getpid(),
        "mounts": mounts,
        "inodes": {path: inode(path) for path in mounts},
        "files": {path: statvfs(path) for path in ("/tmp", "/sandbox", "/dev/shm", "/out") if path in mounts},
        "limits": {name: resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1] for name in (
            "NOFILE", "FSIZE", "CORE", "MEMLOCK", "MSGQUEUE", "STACK", "SIGPENDING")},
        "interfaces": interfaces(),
        "sys": len(os.listdir("/sys")) if os.path.isdir("/sys") else 0,
        "refused": {
            "unix": refused(socket.socket, socket.AF_UNIX, socket.SOCK_STREAM),
            "inet": refused(socket.socket, socket.AF_INET, socket.SOCK_STREAM),
            "inet6": refused(socket.socket, socket.AF_INET6, socket.SOCK_DGRAM),
            "netlink": refused(socket.socket, 16, socket.SOCK_RAW),
            "packet": refused(socket.socket, 17, socket.SOCK_RAW),
            "alg": refused(socket.socket, 38, socket.SOCK_SEQPACKET),
            "vsock": refused(socket.socket, 40, socket.SOCK_STREAM),
            "datagram": refused(socket.socket, socket.AF_UNIX, socket.SOCK_DGRAM),
            "userns": refused_to_child(os.unshare, 0x10000000),
            "root file": refused(os.open, "/rlm-probe", os.O_CREAT | os.O_WRONLY),
            "sysctl": refused(os.open, "/proc/sys/kernel/core_pattern", os.O_WRONLY),
            "mknod": refused(os.mknod, "/tmp/rlm-probe", 0o020600, os.makedev(1, 3)),
        },
    }


def hand_over_listener(path):
    """Opens the only listener of this network and hands it to the host."""
    with socket.socket() as listener, socket.socket(socket.AF_UNIX) as host:
        listener.bind(("127.0.0.1", 3128))
        listener.listen(64)
        host.connect(path)
        socket.send_fds(host, [b"l"], [listener.fileno()])
        host.recv(1)  # the host has it when it closes


def statvfs(path):
    s = os.statvfs(path)
    return [s.f_blocks * s.f_frsize, s.f_files, s.f_flag]


def inode(path):
    s = os.stat(path)
    return [s.st_dev, s.st_ino]


def unescaped(path):
    """Decodes a path of mountinfo, which writes blanks and backslashes as numbers."""
    for number, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(number, char)
    return path


def interfaces():
    with open("/proc/self/net/dev") as file:
        return [line.split(":")[0].strip() for line in file if ":" in line]


def hold():
    """Signals and reaps processes for the host until the session ends."""
    signals = {signal.SIGINT, signal.SIGUSR1, signal.SIGCHLD, signal.SIGIO}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    fcntl.fcntl(life[0], fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(life[0], fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    while True:
        info = signal.sigtimedwait(signals, 5)
        reap()
        if gone(life[0]) or gone(HOST):
            os._exit(0)  # all other processes end with this one
        if info is None or info.si_pid:
            continue  # a timeout, or a signal from inside
        if info.si_signo == signal.SIGINT:
            signal_all(signal.SIGINT)
        elif info.si_signo == signal.SIGUSR1:
            kill_except(int.from_bytes(spared[:4], "little"))
        else:
            continue
        os.write(REPORT, b"\x06")


def gone(fd):
    """Reports whether the other end of a pipe is closed."""
    poll = select.poll()
    poll.register(fd, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def signal_all(number):
    try:
        os.kill(-1, number)
    except OSError:
        pass


def kill_except(spare):
    """Kills all processes but one. They are stopped first, so that none can fork."""
    for _ in range(1000):
        signal_all(signal.SIGSTOP)
        killed = False
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in (1, spare) and not zombie(name):
                try:
                    os.kill(int(name), signal.SIGKILL)
                    killed = True
                except OSError:
                    pass
        reap()
        if not killed:
            break
        sleep(0.0002)
    try:
        os.kill(spare, signal.SIGCONT)
    except OSError:
        pass


def zombie(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def announce(pid):
    spared[:4] = pid.to_bytes(4, "little")


# The connection uses descriptors 3 and 4, so that output of a child or C code to 1 and 2
# cannot mix with it. Later processes do not inherit this process's other descriptors.
os.dup2(0, 3, False)
os.dup2(1, 4, False)


def out_of_the_way(fd):
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100)
    os.close(fd)
    return moved


HOST, REPORT = out_of_the_way(0), out_of_the_way(2)
null = os.open("/dev/null", os.O_RDWR)
for fd in {0, 1, 2} - {null}:
    os.dup2(null, fd)
life = [out_of_the_way(fd) for fd in os.pipe()]
own = [HOST, REPORT, life[0]]
spared = mmap.mmap(-1, 4096)


def leave_own():
    while own:
        os.close(own.pop())


if os.environ.get("RLM_EGRESS"):
    hand_over_listener(os.environ.pop("RLM_EGRESS"))
os.write(REPORT, json.dumps(attest()).encode() + b"\n")
os.register_at_fork(after_in_child=leave_own)
