"""The folder /out in a tier without files: in the guest's memory, so it is copied, restored
and bounded with the session. Python's functions for files reach it; there is no C code that
opens files by itself.

Only files and folders exist there, no links. All other paths go to the functions that were
there before, which have no files to offer.
"""

import builtins
import errno
import io
import os
import posixpath
import stat as stats
import sys
import time

import patches
import wire

ROOT = "/out"
MOST_BYTES, MOST_ENTRIES = 64 << 20, 4096  # as in the tiers with a file system
_FIRST = 1000  # the first descriptor of a file in memory


def _error(number, *paths):
    return OSError(number, os.strerror(number), *paths)


class _File:
    def __init__(self):
        self.data, self.changed, self.is_placed = bytearray(), time.time(), True


class _Folder:
    def __init__(self):
        self.entries, self.changed = {}, time.time()


class _Tree:
    """The files, and what they take."""

    def __init__(self):
        self.root, self.bytes, self.count = _Folder(), 0, 0

    def find(self, parts, path):
        node = self.root
        for part in parts:
            if not isinstance(node, _Folder):
                raise _error(errno.ENOTDIR, path)
            if part not in node.entries:
                raise _error(errno.ENOENT, path)
            node = node.entries[part]
        return node

    def folder_of(self, parts, path):
        if not parts:
            raise _error(errno.EBUSY, path)
        if len(parts[-1].encode("utf-8", "surrogateescape")) > 255:
            raise _error(errno.ENAMETOOLONG, path)
        folder = self.find(parts[:-1], path)
        if not isinstance(folder, _Folder):
            raise _error(errno.ENOTDIR, path)
        return folder, parts[-1]

    def add(self, parts, path, node):
        folder, name = self.folder_of(parts, path)
        if name in folder.entries:
            raise _error(errno.EEXIST, path)
        if self.count >= MOST_ENTRIES:
            raise OSError(errno.ENOSPC, f"{ROOT} holds at most {MOST_ENTRIES:,} files and folders", path)
        folder.entries[name], folder.changed = node, time.time()
        self.count += 1

    def remove(self, parts, path, is_folder):
        folder, name = self.folder_of(parts, path)
        node = self.find(parts, path)
        if isinstance(node, _Folder) != is_folder:
            raise _error(errno.ENOTDIR if is_folder else errno.EISDIR, path)
        if is_folder and node.entries:
            raise _error(errno.ENOTEMPTY, path)
        del folder.entries[name]
        folder.changed = time.time()
        self.count -= 1
        if not is_folder:
            self.bytes -= len(node.data)
            node.is_placed = False

    def resize(self, node, size):
        grows = size - len(node.data)
        if node.is_placed:
            if grows > 0 and self.bytes + grows > MOST_BYTES:
                raise OSError(errno.ENOSPC, f"{ROOT} holds at most {MOST_BYTES >> 20} MiB")
            self.bytes += grows
        if grows > 0:
            node.data.extend(bytes(grows))
        else:
            del node.data[size:]
        node.changed = time.time()


_tree = None  # None: this session has no such folder
_open_files = {}  # descriptor -> _Raw


def _parts(path):
    """Returns a path's parts below /out, None if it lies elsewhere."""
    if isinstance(path, int):
        return None
    try:
        text = os.fsdecode(path)
    except TypeError:
        return None
    if "\0" in text or not text.startswith("/"):
        return None
    text = "/" + posixpath.normpath(text).lstrip("/")
    if text == ROOT:
        return ()
    return tuple(text[len(ROOT) + 1:].split("/")) if text.startswith(ROOT + "/") else None


def _note_files():
    """Tells the host that a snippet needs other files: another tier may have them."""
    caller = sys._getframe(2).f_code.co_filename
    if caller.startswith("<snippet ") or "pathlib" in caller:
        wire.send("r", "files")


class _Raw(io.RawIOBase):
    """An open file."""

    def __init__(self, node, name, flags):
        self._node, self._at, self.name = node, 0, name
        self._appends = bool(flags & os.O_APPEND)
        access = flags & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR)
        self._reads = access in (os.O_RDONLY, os.O_RDWR)
        self._writes = access in (os.O_WRONLY, os.O_RDWR)
        self._number = None
        self.mode = "rb+" if self._reads and self._writes else "wb" if self._writes else "rb"

    def readable(self):
        return self._reads

    def writable(self):
        return self._writes

    def seekable(self):
        return True

    def fileno(self):
        self._check()
        if self._number is None:
            self._number = max(_open_files, default=_FIRST - 1) + 1
            _open_files[self._number] = self
        return self._number

    def isatty(self):
        return False

    def _check(self):
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    def readinto(self, buffer):
        self._check()
        if not self._reads:
            raise io.UnsupportedOperation("not readable")
        data = self._node.data[self._at:self._at + len(buffer)]
        buffer[:len(data)] = data
        self._at += len(data)
        return len(data)

    def write(self, data):
        self._check()
        if not self._writes:
            raise io.UnsupportedOperation("not writable")
        data = bytes(data)
        at = len(self._node.data) if self._appends else self._at
        if at + len(data) > len(self._node.data):
            _tree.resize(self._node, at + len(data))
        self._node.data[at:at + len(data)] = data
        self._node.changed, self._at = time.time(), at + len(data)
        return len(data)

    def seek(self, offset, whence=0):
        self._check()
        at = {0: 0, 1: self._at, 2: len(self._node.data)}[whence] + offset
        if at < 0:
            raise _error(errno.EINVAL)
        self._at = at
        return at

    def tell(self):
        self._check()
        return self._at

    def truncate(self, size=None):
        self._check()
        if not self._writes:
            raise io.UnsupportedOperation("truncate")
        _tree.resize(self._node, self._at if size is None else size)
        return self._at if size is None else size

    def close(self):
        _open_files.pop(self._number, None)
        super().close()


def _open_raw(parts, path, flags):
    wants = flags & (os.O_WRONLY | os.O_RDWR)
    try:
        node = _tree.find(parts, path)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
        node = _File()
        _tree.add(parts, path, node)
    else:
        if flags & os.O_CREAT and flags & os.O_EXCL:
            raise _error(errno.EEXIST, path)
    if isinstance(node, _Folder):
        raise _error(errno.EISDIR, path)
    if flags & os.O_TRUNC and wants:
        _tree.resize(node, 0)
    return _Raw(node, path, flags)


_MODES = {"r": 0, "w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND, "x": os.O_CREAT | os.O_EXCL}


def _open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
    raw = _open_files.get(file) if isinstance(file, int) else None
    parts = _parts(file)
    if raw is None and parts is None:
        _note_files()
        return _stock["open"](file, mode, buffering, encoding, errors, newline, closefd, opener)
    flags = _flags(mode, buffering, encoding, errors, newline)
    if raw is None and opener is not None:
        raw = _open_files[opener(file, flags)]
    raw = raw or _open_raw(parts, os.fspath(file), flags)
    raw.mode = mode if "b" in mode else mode.replace("t", "") + "b"
    return _wrap(raw, mode, flags, buffering, encoding, errors, newline)


def _flags(mode, buffering, encoding, errors, newline):
    """Checks the arguments of open() as it does, and returns the flags of the file."""
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    kinds = [c for c in mode if c in _MODES]
    if set(mode) - set("rwaxbt+") or len(set(mode)) != len(mode):
        raise ValueError(f"invalid mode: '{mode}'")
    if "b" in mode and "t" in mode:
        raise ValueError("can't have text and binary mode at once")
    if len(kinds) != 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
        if "b" in mode and value is not None:
            raise ValueError(f"binary mode doesn't take {'an' if name[0] == 'e' else 'a'} {name} argument")
    access = os.O_RDWR if "+" in mode else os.O_RDONLY if kinds[0] == "r" else os.O_WRONLY
    return access | _MODES[kinds[0]]


def _wrap(raw, mode, flags, buffering, encoding, errors, newline):
    if buffering == 0:
        if "b" not in mode:
            raw.close()
            raise ValueError("can't have unbuffered text I/O")  # the file is open by then, as in CPython
        return raw
    kind = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
    buffer = kind(raw, buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE)
    if flags & os.O_APPEND:
        buffer.seek(0, 2)
    if "b" in mode:
        return buffer
    text = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering=buffering == 1)
    text.mode = mode
    return text


def _os_open(path, flags, mode=0o777, *, dir_fd=None):
    parts = _parts(path)
    if parts is None or dir_fd is not None:
        return _stock["os.open"](path, flags, mode, dir_fd=dir_fd)
    return _open_raw(parts, os.fspath(path), flags).fileno()


def _on_number(name, act):
    """Returns a function of a descriptor."""

    def call(number, *args, **named):
        raw = _open_files.get(number) if isinstance(number, int) else None
        return _stock["os." + name](number, *args, **named) if raw is None else act(raw, *args, **named)

    return call


def _on_path(name, act):
    """Returns a function of a path."""

    def call(path=".", *args, **named):
        raw = _open_files.get(path) if isinstance(path, int) else None
        parts = _parts(path)
        if parts is None and raw is None or named.get("dir_fd") is not None:
            _note_files()
            return _stock["os." + name](path, *args, **named)
        return act(raw._node if raw is not None else parts, path if raw is not None else os.fspath(path), *args, **named)

    return call


def _status(node, path=None, *, dir_fd=None, follow_symlinks=True):
    if isinstance(node, tuple):
        node = _tree.find(node, path)
    is_folder = isinstance(node, _Folder)
    mode = stats.S_IFDIR | 0o755 if is_folder else stats.S_IFREG | 0o644
    size = 0 if is_folder else len(node.data)
    whole, at = int(node.changed), node.changed
    return os.stat_result(
        (mode, id(node), 0, 1, 0, 0, size, whole, whole, whole),
        {name: value for kind in ("atime", "mtime", "ctime")
         for name, value in ((f"st_{kind}", at), (f"st_{kind}_ns", int(at * 1e9)))})


def _names(parts, path):
    node = _tree.find(parts, path)
    if not isinstance(node, _Folder):
        raise _error(errno.ENOTDIR, path)
    return list(node.entries)


class _Entry:
    """An entry of scandir."""

    def __init__(self, parts, folder, name):
        self._parts, self.name = (*parts, name), name
        self.path = posixpath.join(folder, name)

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"

    def is_dir(self, *, follow_symlinks=True):
        return stats.S_ISDIR(self.stat().st_mode)

    def is_file(self, *, follow_symlinks=True):
        return not self.is_dir()

    def is_symlink(self):
        return False

    def is_junction(self):
        return False

    def inode(self):
        return self.stat().st_ino

    def stat(self, *, follow_symlinks=True):
        return _status(self._parts, self.path)


class _Scan:
    """The iterator of scandir."""

    def __init__(self, parts, path):
        self._entries = iter([_Entry(parts, os.fsdecode(path), name) for name in _names(parts, path)])

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self._entries = iter(())


def _rename(source, target, *, src_dir_fd=None, dst_dir_fd=None):
    old, new = _parts(source), _parts(target)
    if old is None and new is None:
        return _stock["os.rename"](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
    if old is None or new is None:
        raise _error(errno.EXDEV, source, None, target)
    folder, name = _tree.folder_of(old, source)
    node = _tree.find(old, source)
    if new[:len(old)] == old:
        if new == old:
            return None
        raise _error(errno.EINVAL, source, None, target)
    _tree.folder_of(new, target)
    try:
        there = _tree.find(new, target)
    except FileNotFoundError:
        pass
    else:
        if isinstance(there, _Folder) and not isinstance(node, _Folder):
            raise _error(errno.EISDIR, source, None, target)
        _tree.remove(new, target, isinstance(node, _Folder))
    del folder.entries[name]
    _tree.count -= 1
    _tree.add(new, target, node)


def _touch(parts, path, times=None, *, ns=None, dir_fd=None, follow_symlinks=True):
    node = _tree.find(parts, path) if isinstance(parts, tuple) else parts
    node.changed = time.time() if times is None and ns is None else times[1] if times else ns[1] / 1e9


def _may(parts, path, mode, **named):
    try:
        node = _tree.find(parts, path)
    except OSError:
        return False
    return isinstance(node, _Folder) or not mode & os.X_OK


def _shorten(node, path, length):
    if isinstance(node, tuple):
        node = _tree.find(node, path)
    if isinstance(node, _Folder):
        raise _error(errno.EISDIR, path)
    _tree.resize(node, length)


_ON_NUMBERS = {
    "close": lambda raw: raw.close(), "read": lambda raw, n: raw.read(n), "write": lambda raw, data: raw.write(data),
    "fstat": lambda raw: _status(raw._node), "ftruncate": lambda raw, length: _shorten(raw._node, raw.name, length),
    "lseek": lambda raw, offset, whence: raw.seek(offset, whence), "fsync": lambda raw: None,
    "fdatasync": lambda raw: None, "isatty": lambda raw: False,
}
_ON_PATHS = {
    "stat": _status, "lstat": _status, "listdir": _names, "scandir": _Scan, "utime": _touch, "access": _may,
    "mkdir": lambda parts, path, mode=0o777, **named: _tree.add(parts, path, _Folder()),
    "rmdir": lambda parts, path, **named: _tree.remove(parts, path, True),
    "unlink": lambda parts, path, **named: _tree.remove(parts, path, False),
    "remove": lambda parts, path, **named: _tree.remove(parts, path, False),
    "truncate": _shorten, "chmod": lambda parts, path, mode, **named: _status(parts, path) and None,
    "readlink": lambda parts, path, **named: _refuse_link(parts, path),
}


def _refuse_link(parts, path):
    _tree.find(parts, path)
    raise _error(errno.EINVAL, path)


_stock = {}  # name -> the function that was there before


def provide():
    """Makes the folder, for a session whose files are copied to the host."""
    global _tree
    if _tree is not None:
        return
    _tree = _Tree()
    made = {"open": _open, "os.open": _os_open, "os.rename": _rename, "os.replace": _rename}
    made.update(("os." + name, _on_number(name, act)) for name, act in _ON_NUMBERS.items())
    made.update(("os." + name, _on_path(name, act)) for name, act in _ON_PATHS.items())
    by_stock = {}
    for name, function in made.items():
        stock = builtins.open if name == "open" else getattr(os, name[3:], None)
        if stock is None:
            continue
        function.__name__ = function.__qualname__ = name.rpartition(".")[2]
        function.__doc__ = stock.__doc__
        _stock[name] = stock
        by_stock[id(stock)] = function
    _replace(by_stock)


def _replace(by_stock):
    """Puts the functions into the place of the stock ones, wherever a module has them."""
    for name, module in list(sys.modules.items()):
        for key, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in by_stock and key != "__builtins__":
                setattr(module, key, by_stock[id(value)])
                patches.keep_name(name, key)
    shell, globs = sys.modules.get("shutil"), sys.modules.get("glob")
    if shell is not None:
        shell._use_fd_functions = False
        patches.keep_name("shutil", "_use_fd_functions")
    globber = getattr(globs, "_StringGlobber", None)
    if globber is not None:
        globber.scandir = staticmethod(os.scandir)
        patches.keep_name("glob", "_StringGlobber")


# --- the files of a session that moves, in any tier ----------------------------


def take():
    """Returns the files below /out: {path: bytes, or None for a folder}."""
    found = {}
    for folder, folders, files in os.walk(ROOT):
        found.update((posixpath.join(folder, name), None) for name in folders)
        for name in files:
            path = posixpath.join(folder, name)
            if stats.S_ISREG(os.lstat(path).st_mode):
                with builtins.open(path, "rb") as file:
                    found[path] = file.read()
    return found


def give(found):
    """Writes files that another tier had."""
    for path, data in found.items():
        folder = path if data is None else posixpath.dirname(path)
        if not os.path.isdir(folder):  # makedirs would look for /, which is not there in every tier
            os.makedirs(folder)
        if data is not None:
            with builtins.open(path, "wb") as file:
                file.write(data)
