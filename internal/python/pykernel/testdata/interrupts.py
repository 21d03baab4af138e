"""Interrupts a request to the host before each instruction at which CPython looks for signals, and asks again
afterwards: no lock may be held, and no answer lost. usage: interrupts.py NATIVE.PY"""

import dis
import os
import signal
import socket
import struct
import sys
import threading
import types

native = types.ModuleType("native")
with open(sys.argv[1]) as file:
    exec(compile(file.read(), sys.argv[1], "exec"), native.__dict__)
ours, theirs = socket.socketpair()
native.INPUT = native.OUTPUT = ours.fileno()
connection = native.connection
signal.signal(signal.SIGINT, connection.interrupt)


def read(size):
    data = b""
    while len(data) < size:
        data += theirs.recv(size - len(data))
    return data


def answer_all():
    """Answers each request with its own bytes."""
    while True:
        size, _ = struct.unpack("<IB", read(5))
        payload = read(size)
        number, rest = payload[:4], payload[4:]
        theirs.sendall(struct.pack("<IB", 5 + len(rest), 97) + number + b"\0" + rest)


threading.Thread(target=answer_all, daemon=True).start()

LOOKS = ("RESUME", "CALL", "PRECALL", "JUMP_BACKWARD", "POP_JUMP_BACKWARD", "BEFORE_WITH")


class InterruptAt:
    """A trace function that interrupts before the n-th instruction that follows a look for signals."""

    def __init__(self, n):
        self.left, self.before, self.done = n, {}, False

    def __call__(self, frame, event, argument):
        if self.done or frame.f_code.co_name in ("answer_all", "read"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.look(frame)
        return self

    def look(self, frame):
        names = names_of(frame.f_code)
        before = self.before.get(frame, "RESUME")
        self.before[frame] = names.get(frame.f_lasti, "")
        if not before.startswith(LOOKS):
            return
        self.left -= 1
        if self.left < 0:
            self.done = True
            connection.interrupt()


_names = {}


def names_of(code):
    if code not in _names:
        _names[code] = {i.offset: i.opname for i in dis.get_instructions(code)}
    return _names[code]


def interrupt_at(n, use):
    """Reports whether there is an n-th instruction, and whether use was interrupted."""
    trace, interrupted = InterruptAt(n), False
    sys.settrace(trace)
    try:
        use()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        sys.settrace(None)
    return trace.done, interrupted


def check(what, n):
    for lock in (connection.sending, connection.state._lock, native.capture.lock):
        if lock.locked():
            sys.exit(f"{what}, interrupted at {n}: a lock stays locked")
    if connection.critical or connection.waiting or connection.reading or connection.interrupted:
        sys.exit(f"{what}, interrupted at {n}: {vars(connection)}")
    if native.call(b"q%d" % n) != b"q%d" % n:
        sys.exit(f"{what}, interrupted at {n}: the next answer is wrong")


def forward():
    file = os.memfd_create("output")
    os.write(file, b"text")
    native.capture.files = [[1, file, 0]]
    native.capture.forward()
    os.close(file)
    native.capture.files = []


uses = {
    "a request": lambda: native.call(b"qfirst"),
    "a posted request": lambda: (connection.post(b"qposted", lambda *_: None), connection.pump()),
    "forwarded output": forward,
}
for what, use in uses.items():
    n = stopped = 0
    while True:
        is_there, interrupted = interrupt_at(n, use)
        native.capture.files = []
        check(what, n)
        if not is_there:
            break
        n, stopped = n + 1, stopped + interrupted
    print(what, n, stopped)
    if stopped < n - 1:
        sys.exit(f"{what}: {n - stopped} of {n} interrupts were lost")

def enter_beside():
    """Enters the shield in another thread, while the main thread seems to enter it, too, twice."""
    real = threading.current_thread

    def current_thread():
        connection.critical += 1
        return real()

    threading.current_thread = current_thread
    with connection.shield:
        pass
    threading.current_thread = real


thread = threading.Thread(target=enter_beside)
thread.start()
thread.join()
if connection.critical != 2:
    sys.exit(f"another thread changes the shield of the main one: {connection.critical}, want 2")
