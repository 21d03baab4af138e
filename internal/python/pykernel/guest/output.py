"""sys.stdout and sys.stderr over the host's wire; sys.stdin, which is empty.

They do not use file descriptors, so a snippet that closes those cannot mute the
snippets after it. Text that came from bytes that are not UTF-8 goes out as the
same bytes again.
"""

import io
import sys
import wire


class _Raw(io.RawIOBase):
    def __init__(self, fd, name):
        self._fd, self.name = fd, name
        self.mode = "wb" if fd else "rb"
        self._op = b"o%d" % fd

    def readable(self):
        return self._fd == 0

    def writable(self):
        return self._fd > 0

    def fileno(self):
        return self._fd

    def isatty(self):
        return False

    def readinto(self, buffer):
        return 0

    def write(self, data):
        wire.call(self._op + bytes(data))
        return len(data)


def _stream(fd, name, errors):
    raw = _Raw(fd, name)
    buffer = io.BufferedWriter(raw, 32768) if fd else io.BufferedReader(raw)
    stream = io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, newline="\n", line_buffering=True)
    stream.mode = raw.mode[0]
    return stream


stdout = _stream(1, "<stdout>", "surrogateescape")
stderr = _stream(2, "<stderr>", "backslashreplace")
stdin = _stream(0, "<stdin>", "surrogateescape")


def _usable(stream):
    try:
        return not stream.closed
    except ValueError:
        return False  # detached


def installed():
    """Reports whether our streams are installed and usable."""
    return sys.stdout is stdout and sys.stderr is stderr and _usable(stdout) and _usable(stderr)


def install():
    """Installs the streams again, because the last snippet may have replaced them."""
    global stdout, stderr, stdin
    if not _usable(stdout):
        stdout = _stream(1, "<stdout>", "surrogateescape")
    if not _usable(stderr):
        stderr = _stream(2, "<stderr>", "backslashreplace")
    if not _usable(stdin):
        stdin = _stream(0, "<stdin>", "surrogateescape")
    sys.stdout = sys.__stdout__ = stdout
    sys.stderr = sys.__stderr__ = stderr
    sys.stdin = sys.__stdin__ = stdin


def echo(text):
    """Shows the value of a snippet's last expression. It follows the output, which is all
    written by then."""
    flush()
    wire.call(b"h" + text.encode("utf-8", "surrogateescape"))


def flush():
    """Flushes the current streams and our own."""
    for stream in (stdout, stderr) if sys.stdout is stdout else (sys.stdout, stdout, stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the snippet's own stream, or one it closed
