# What a CPython outside of WebAssembly runs first: the module _rlm over a
# connection, and the loop that serves snippets. The host's half is session.Connection.
#
# A process that is about to run a snippet may leave a keeper behind: its parent,
# asleep, which takes the session over in the state before the snippet when the
# snippet's process dies.
import ast
import functools
import gc
import itertools
import linecache
import marshal
import os
import random
import resource
import select
import signal
import struct
import sys
import threading
import types

try:
    import _interpreters
except ImportError:  # before CPython 3.13
    try:
        import _xxsubinterpreters as _interpreters
    except ImportError:
        _interpreters = None

INPUT = OUTPUT = 3  # the connection: one socket, or a pipe for each way
_private = {3}  # descriptors that only the session's own processes have
_read, _readv, _write, _fstat, _pread, _dup2 = os.read, os.readv, os.write, os.fstat, os.pread, os.dup2
_random = random._inst
_forked = False  # this process is a snippet's own child
_keeping = False  # the fork under way is ours
_HEAD = struct.Struct("<IB")
_NUMBER = struct.Struct("<I")
_ANSWER = struct.Struct("<IB")  # the head of an answer: its number, and 1 if the host failed
_ROOM = 1 << 20  # bytes of memory that is kept for long frames: new pages take longer than a copy
_RUN = struct.Struct("<iB16s16s")
_LOOK_EVERY = 0.1  # seconds between two looks of the main thread at whether it was interrupted


class HostError(RuntimeError):
    """The host refused a call or failed at it."""


HostError.__module__, HostError.__qualname__ = "_rlm", "HostError"

# What a process that a snippet forked is told, by the kind of its request.
_OF_FORKED = {
    b"t": "a forked process cannot ask the host for a part of a long context: open the file context.path there, "
          "or if that is None, take the part or context.text() before the process is forked",
    b"d": "a forked process cannot open a file of the context: open it before the process is forked, "
          "text = context[path], and hand over the text",
}


class Shield:
    """Keeps interrupts off what the main thread does under it. One that came meanwhile is raised when the last
    shield is left."""

    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self.connection.critical += 1  # no other thread may write it, not even to add 0

    def __exit__(self, *_):
        if threading.current_thread() is threading.main_thread():
            self.connection.leave_critical()


class Connection:
    """Requests of any number of threads over one socket. Whoever waits for an
    answer reads, one thread at a time, and hands the others theirs."""

    def __init__(self):
        self.buffer = bytearray()
        self.room = bytearray()
        self.shield = Shield(self)
        self.renew()

    def renew(self):
        """Forgets the requests of an earlier process."""
        self.numbers = itertools.count(1)
        self.answers = {}
        self.orders = []  # of the host, that came while a thread read
        self.callbacks = {}
        self.snippets = 0  # how many have begun
        self.state = threading.Condition(threading.Lock())
        self.sending = threading.Lock()
        self.reading = False
        self.critical = 0  # the main thread is at work that must not be cut short
        self.waiting = False  # it only waits, so that an interrupt harms nothing
        self.interrupted = False
        self.owner = os.getpid()

    def interrupt(self, *_):
        if self.critical and not self.waiting:
            self.interrupted = True
        else:
            self.waiting = self.interrupted = False  # whoever cleans up is not interrupted again
            raise KeyboardInterrupt

    def permit(self):
        """Lets interrupts through. Those that came until now were meant for something earlier."""
        self.interrupted = False
        self.critical = 0

    def leave_critical(self):
        self.critical -= 1
        self.raise_interrupt(not self.critical)

    def raise_interrupt(self, may_raise):
        if self.interrupted and may_raise:
            self.interrupted = False
            raise KeyboardInterrupt

    def send(self, kind, *parts):
        data = b"".join((_HEAD.pack(sum(map(len, parts)), kind), *parts))
        with self.shield, self.sending:
            view = memoryview(data)
            while view:
                view = view[_write(OUTPUT, view):]

    def post(self, payload, callback=None):
        """Sends a request; its number."""
        if _forked:
            raise HostError(_OF_FORKED.get(payload[:1], "a forked process cannot call the host"))
        number = next(self.numbers)
        if callback is not None:
            self.callbacks[number] = callback
        self.send(113, _NUMBER.pack(number), payload)
        return number

    def request(self, payload):
        """Sends a request and returns its answer. An interrupt ends the wait for it, and nothing else: no lock
        stays locked, and no frame half read."""
        main = threading.current_thread() is threading.main_thread()
        may_stop = main and not self.critical
        with self.shield:
            number, begun = self.post(payload), self.snippets
            while True:
                with self.state:
                    while number not in self.answers and self.reading and begun == self.snippets:
                        self.state.wait(_LOOK_EVERY if may_stop else None)
                        self.raise_interrupt(may_stop)
                    if number in self.answers:
                        return self.answers.pop(number)
                    if begun != self.snippets:
                        raise SystemExit  # of a thread whose snippet has ended; it says nothing
                    self.reading = True
                self.read_as_leader(None, may_stop)

    def order(self):
        """What the host sends next that is no answer. A thread that an earlier snippet
        left waiting for its answer may be the one that reads it."""
        while True:
            with self.state:
                while not self.orders and self.reading:
                    self.state.wait()
                if self.orders:
                    self.snippets += 1
                    self.answers.clear()  # those that an interrupted snippet did not wait for
                    self.state.notify_all()
                    return self.orders.pop(0)
                self.reading = True
            self.read_as_leader(None)

    def pump(self):
        """Takes the answers that have come, without waiting."""
        with self.shield:
            with self.state:
                if self.reading:
                    return
                self.reading = True
            self.read_as_leader(0)

    def read_as_leader(self, timeout, may_stop=False):
        try:
            ready = self.readable(timeout, may_stop)
            while ready:
                self.deliver(*self.take())
                ready = self.whole()  # no poll tells of what has been read already
        finally:
            with self.state:
                self.reading = False
                self.state.notify_all()

    def whole(self):
        """Reports whether a whole frame has been read."""
        return len(self.buffer) >= _HEAD.size and len(self.buffer) >= _HEAD.size + _HEAD.unpack_from(self.buffer)[0]

    def readable(self, timeout, may_stop):
        if self.whole():
            return True
        poll = select.poll()
        poll.register(INPUT, select.POLLIN)
        try:
            self.waiting = may_stop
            self.raise_interrupt(may_stop)
            return bool(poll.poll(timeout))
        finally:
            self.waiting = False

    def take(self):
        """Reads the next frame: its kind, the head of an answer, and the rest."""
        self.fill(_HEAD.size)
        size, kind = _HEAD.unpack_from(self.buffer)
        begin, end = _HEAD.size + (_ANSWER.size if kind == 97 else 0), _HEAD.size + size
        self.fill(begin)
        return kind, bytes(self.buffer[_HEAD.size : begin]), self.cut(begin, end)

    def fill(self, size):
        """Reads until the buffer has so many bytes."""
        while len(self.buffer) < size:
            data = _read(INPUT, 1 << 12)
            if not data:
                os._exit(0)  # the host is gone
            self.buffer += data

    def cut(self, begin, end):
        """Returns the bytes from begin to end of the frame in the buffer, which may have their first ones only."""
        size, first = end - begin, self.buffer[begin:end]
        if len(first) < size:
            room = self.room if size <= len(self.room) else bytearray(size)
            if size <= _ROOM:
                self.room = room
        del self.buffer[:end]
        if len(first) == size:
            return bytes(first)

        at = len(first)
        room[:at] = first
        with memoryview(room) as view:
            while at < size:
                with view[at:size] as rest:
                    count = _readv(INPUT, [rest])
                if not count:
                    os._exit(0)
                at += count
            return bytes(view[:size])

    def deliver(self, kind, head, payload):
        if kind != 97:
            with self.state:
                self.orders.append((kind, payload))
            return
        number, failed = _ANSWER.unpack(head)
        answer = failed == 1, payload
        callback = self.callbacks.pop(number, None)
        if callback is not None:
            callback(*answer)
            return
        with self.state:
            self.answers[number] = answer

    def forget(self, number):
        self.callbacks.pop(number, None)

    def skip_past(self, mark):
        """Discards the bytes for another process, up to the mark."""
        while True:
            at = self.buffer.find(mark)
            if at >= 0:
                del self.buffer[: at + len(mark)]
                return
            del self.buffer[: max(0, len(self.buffer) - len(mark))]
            data = _read(INPUT, 1 << 18)
            if not data:
                os._exit(0)
            self.buffer += data


connection = Connection()


class Capture:
    """What comes to descriptors 1 and 2 from beside sys.stdout and sys.stderr: from
    child processes, from C code. It is gathered in files, and forwarded before
    Python's own next output and at the end of a snippet."""

    def __init__(self):
        self.lock = threading.Lock()
        self.files = []  # number of the stream, file, how much of it has been forwarded

    def open(self):
        for stream in (1, 2):
            try:
                file = os.open("/tmp", os.O_TMPFILE | os.O_RDWR | os.O_APPEND, 0o600)
            except OSError:
                return  # a jail without /tmp: the host shows it when all goes wrong
            _dup2(file, 200 + stream, False)
            os.close(file)
            self.files.append([stream, 200 + stream, 0])

    def attach(self):
        for stream, file, _ in self.files:
            _dup2(file, stream, True)

    def forward(self):
        with connection.shield:
            if not self.lock.acquire(False):
                return
            try:
                for entry in self.files:
                    stream, file, at = entry
                    while at < _fstat(file).st_size:
                        data = _pread(file, 1 << 20, at)
                        entry[2] = at = at + len(data)
                        connection.request(b"o%d" % stream + data)
            except OSError:
                pass  # the snippet has closed it
            finally:
                self.lock.release()

    def clear(self):
        for entry in self.files:
            try:
                if _fstat(entry[1]).st_size:
                    os.ftruncate(entry[1], 0)
            except OSError:
                pass
            entry[2] = 0


capture = Capture()


def call(payload):
    payload = payload if isinstance(payload, bytes) else payload.encode()
    if payload[:1] in (b"o", b"h"):
        if _forked:
            return _write_plain(payload if payload[:1] == b"o" else b"o1%s\n" % payload[1:])
        if capture.files:
            capture.forward()
    failed, data = connection.request(payload)
    if failed:
        raise HostError(data.decode("utf-8", "replace"))
    return data


def _write_plain(payload):
    """The output of a forked process, which does not own the connection."""
    stream, view = payload[1] - 48, memoryview(payload)[2:]
    while view and stream in (1, 2):
        view = view[_write(stream, view):]
    return b""


def before_fork():
    if not _keeping:
        flush()


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # of a stream that the snippet has made
            pass


def after_fork_in_child():
    global _forked, _before
    _before = 0  # the kernel counts anew
    if not _keeping:
        _forked = True
        close_private()


def close_private():
    for fd in _private:
        try:
            os.close(fd)
        except OSError:
            pass  # the snippet has closed it


def call_str(payload):
    return call(payload).decode("utf-8", "surrogateescape")


def compile_echo(source, name, echo):
    """Compiles a snippet; the value of a last expression is assigned to echo."""
    tree = compile(source, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        target = ast.copy_location(ast.Name(echo, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    return compile(tree, name, "exec", dont_inherit=True)


run = None


def set_run(function):
    global run
    if run is None:
        run = function


_DEEP = 300  # a recursion limit below which the runtime might not get through


def serve():
    while True:
        connection.critical = 1  # an interrupt that comes late is nobody's
        kind, payload = connection.order()
        if kind != 114:
            continue
        flags, safe, mark, take_over = _RUN.unpack_from(payload)
        source = payload[_RUN.size:].decode("utf-8", "surrogateescape")
        connection.send(98, mark)
        if safe and keep(take_over):
            continue  # this is the keeper, awake again: the snippet has been run
        capture.attach()
        code = run_snippet(source, flags)
        if _forked:
            os._exit(0)  # a process that the snippet forked and let run on
        if sys.getrecursionlimit() < _DEEP:
            sys.setrecursionlimit(_DEEP)
        if capture.files:
            capture.forward()
            capture.clear()
        if not intact():
            os._exit(0)  # the snippet has put something else in the connection's place
        connection.send(100, mark, _DONE.pack(code, memory_used()))


def intact():
    """Reports whether the connection's descriptors are unchanged."""
    try:
        return _ends == [(s.st_dev, s.st_ino) for s in map(_fstat, (INPUT, OUTPUT))]
    except OSError:
        return False


_STATE = 4 | 8  # the flags of a run that copies variables, which permits interrupts itself


def run_snippet(source, flags):
    connection.interrupted, connection.critical = False, int(flags & _STATE != 0)
    try:
        code = run(source, flags)
        connection.critical = 1
    except KeyboardInterrupt:  # it came when the snippet had ended
        connection.critical = 1
        code = 1
    flush()  # a second interrupt may have cut the first one short
    return code


_DONE = struct.Struct("<iQ")
_mapped = 0  # bytes of files that map_file has mapped
_before = 0  # the memory peak before the first one, in KiB


def map_file(path, size):
    """Maps the first bytes of a file for reading, for as long as the process lives. Returns
    their address."""
    global _mapped, _before
    import ctypes  # here: it takes longer than the start of a process
    import mmap

    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype, offset = ctypes.c_void_p, ctypes.c_longlong(0)
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _fstat(file).st_size < size:
            raise OSError(f"{path} is too short")
        address = library.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, file, offset)
    finally:
        os.close(file)
    if address in (None, ctypes.c_void_p(-1).value):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    _before = _before or memory_used()
    _mapped += size
    return address


def memory_used():
    """Returns the memory peak of this process and its children, in KiB. The kernel counts the
    pages of mapped texts, too, so with them it is an estimate."""
    own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    if _mapped:
        anonymous, files = resident()
        own = max(_before, anonymous, own - min(_mapped >> 10, files))
        children -= _mapped >> 10
    return max(own, children)


def resident():
    """Returns the memory of this process that belongs to no file, and that of files, in KiB."""
    try:
        with open("/proc/self/status") as file:
            fields = dict(line.split(":", 1) for line in file)
        return int(fields["RssAnon"].split()[0]), int(fields["RssFile"].split()[0])
    except (OSError, KeyError, ValueError):  # of a kernel that does not say so
        return 0, _mapped >> 10


_announce = lambda pid: None  # tells whoever ends processes which one to spare
_keeper = 0  # the parent that keeps the last state, 0 if there is none


def keep(mark):
    """Forks. The child returns False and goes on as the session; the parent
    sleeps, and returns True once the child has died."""
    global _keeper, _keeping
    if threading.active_count() > 1 or has_children() or has_interpreters():
        return False  # a copy would not have them, or would die of them
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    chance = _random.getstate()
    connection.send(107, _NUMBER.pack(os.getpid()))  # before there are two that write
    old, _keeping = _keeper, True
    _announce(os.getpid())
    try:
        pid = os.fork()
    except OSError:  # the snippet has used up its processes
        connection.send(107, _NUMBER.pack(0))
        _announce(old)
        signal.signal(signal.SIGINT, connection.interrupt)
        return False
    finally:
        _keeping = False
    if pid == 0:
        # The former keeper must be dead before this process can ever kill the new
        # one: it would wake up by that and speak up.
        if old:
            try:
                os.kill(old, signal.SIGKILL)
            except OSError:
                pass
        signal.signal(signal.SIGINT, connection.interrupt)
        _keeper = os.getppid()
        _random.setstate(chance)  # the module draws anew in a forked process
        connection.renew()
        return False
    while True:
        try:
            if os.waitpid(pid, 0)[0] == pid:
                break
        except ChildProcessError:
            break
    capture.clear()
    _write(OUTPUT, mark)
    connection.skip_past(mark)
    connection.renew()
    _keeper = 0
    signal.signal(signal.SIGINT, connection.interrupt)
    return True


_MARGIN = 2 << 20  # for what is no data: the stack, pages of libraries


def limit_memory(limit):
    """Bounds what this process and each child of it may have for itself. What it
    has already counts; the file of a library does not."""
    if not limit:
        return
    try:
        with open("/proc/self/statm") as file:
            fields = [int(n) * resource.getpagesize() for n in file.read().split()]
        resident, data = fields[1], fields[5]
    except OSError:  # a jail without /proc
        resident = data = 0
    limit = max(limit - resident - _MARGIN, 8 << 20) + data
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def has_children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return True
    except ChildProcessError:
        return False


def has_interpreters():
    """Whether the session has made another interpreter in this process. CPython
    aborts in the child of a fork then."""
    return _interpreters is not None and len(_interpreters.list_all()) > 1


def compiled_ahead(path):
    """Source -> its code, of the file that the image's recipe makes; a pinned image
    may have none."""
    try:
        with open(path, "rb") as file:
            return marshal.load(file)
    except (OSError, ValueError, EOFError, TypeError):
        return {}


def start(boot, compiled, output=3, life=None, announce=None, hold=None, stock=None, packages=None):
    """Loads the runtime, says so and serves. The connection is descriptor 3, and
    output if that is another; life is one that is open as long as the session
    lives. The first process runs hold, if that is given. compiled is code, and stock
    a file of code, that is used instead of compiling the same source. packages is a
    folder of further ones, which come before those that this Python has."""
    global _keeping, _announce, _ends, OUTPUT
    memory = int(os.environ.pop("RLM_MEMORY", 0))
    OUTPUT = output
    _private.update({output} if life is None else {output, life})
    _announce = announce or _announce
    for fd in _private:
        os.set_inheritable(fd, False)
    _ends = [(s.st_dev, s.st_ino) for s in map(_fstat, (INPUT, OUTPUT))]
    getattr(linecache, "_interactive_cache", {}).clear()  # this is no source of a snippet's "<string>"
    module = types.ModuleType("_rlm")
    module.__dict__.update(
        call=call, call_str=call_str, HostError=HostError, compile=compile_echo, set_run=set_run,
        permit=connection.permit, hold=functools.partial(setattr, connection, "critical", 1),
        native=True, forked=lambda: _forked, map_file=map_file, post=connection.post, pump=connection.pump,
        forget=connection.forget, fileno=INPUT,
        stock=compiled_ahead(stock) if stock else marshal.loads(compiled) if compiled else {},
    )
    sys.modules["_rlm"] = module
    signal.signal(signal.SIGINT, connection.interrupt)
    kernel = {"__name__": "boot"}
    exec(compile(boot, "<rlm boot.py>", "exec"), kernel)
    os.register_at_fork(before=before_fork, after_in_child=after_fork_in_child)
    _keeping = True
    if os.fork():
        close_private()
        (hold or wait_for_ever)()
    _keeping = False
    if packages and os.path.isdir(packages):  # not before: the first process must not import what is there
        kernel["loaded"]["environment"].find_packages(packages)
    connection.renew()
    capture.open()
    gc.collect()
    gc.freeze()  # copies of this process share what is never looked at again
    limit_memory(memory)
    run("None", 0)  # what a first snippet makes its own is then no longer shared with the first process
    connection.send(121, struct.pack("<3i", *sys.version_info[:3]))
    serve()


def wait_for_ever():
    """Runs as the first process, whose end would end all others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            os.wait()
        except OSError:
            signal.pause()
