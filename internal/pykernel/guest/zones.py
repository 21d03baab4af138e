"""The package tzdata, from which zoneinfo takes the zones that the system lacks.

The host has the data. Here is the layout that the package has on PyPI: the resource
`zones` lists the names, and `zoneinfo.Europe` has the resource `Berlin`.
"""

import errno
import io

import wire

_ROOT = "tzdata"
_names = ()  # of all zones, as soon as they are wanted


def _list():
    global _names
    _names = _names or tuple(wire.text("k").split("\n"))
    return _names


def _inside(folder):
    """Returns the names in a folder of zones, its folders included; none if there is none."""
    prefix = f"{folder}/" if folder else ""
    return {name[len(prefix):].partition("/")[0] for name in _list() if name.startswith(prefix)}


class _File:
    """A file of the package, whether it exists or not."""

    def __init__(self, name, read):
        self.name, self._read = name, read

    def read_bytes(self):
        data = self._read()
        if data is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", self.name)
        return data

    def read_text(self, encoding=None, errors="strict"):
        return self.read_bytes().decode(encoding or "utf-8", errors)

    def open(self, mode="r", *args, **kwargs):
        file = io.BytesIO(self.read_bytes())
        return file if "b" in mode else io.TextIOWrapper(file, *args, **kwargs)

    def is_file(self):
        return self._read() is not None

    def is_dir(self):
        return False

    def iterdir(self):
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", self.name)


class _Folder:
    """A folder of the package; its path is None for the package's own."""

    def __init__(self, path):
        self._path = path
        self.name = _ROOT if path is None else path.rpartition("/")[2] or "zoneinfo"

    def names(self):
        return ["zones", "zoneinfo"] if self._path is None else sorted(_inside(self._path))

    def joinpath(self, *parts):
        at = self
        for part in "/".join(parts).split("/"):
            at = at._child(part)
        return at

    __truediv__ = joinpath

    def _child(self, name):
        if self._path is None:
            if name == "zoneinfo":
                return _Folder("")
            return _File(name, lambda: "\n".join(_list()).encode() if name == "zones" else None)
        path = f"{self._path}/{name}" if self._path else name
        if name and _inside(path):
            return _Folder(path)
        return _File(name, lambda: wire.call(f"k{path}") if path in _list() else None)

    def iterdir(self):
        return map(self._child, self.names())

    def open(self, *args, **kwargs):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", self.name)

    read_bytes = read_text = open

    def is_dir(self):
        return True

    def is_file(self):
        return False


class _Reader:
    """What importlib.resources reads a package by."""

    def __init__(self, folder):
        self._folder = folder

    def files(self):
        return self._folder

    def open_resource(self, name):  # CPython 3.9
        return self._folder.joinpath(name).open("rb")

    def resource_path(self, name):
        raise FileNotFoundError(name)

    def is_resource(self, name):
        return self._folder.joinpath(name).is_file()

    def contents(self):
        return self._folder.names()


class _Loader:
    def __init__(self, folder):
        self._folder = folder

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        pass

    def get_resource_reader(self, name):
        return _Reader(self._folder)


def _folder(module):
    """Returns the folder that a module's name stands for, or None."""
    if module == _ROOT:
        return _Folder(None)
    if module == f"{_ROOT}.zoneinfo":
        return _Folder("")
    start = f"{_ROOT}.zoneinfo."
    path = module[len(start):].replace(".", "/")
    return _Folder(path) if module.startswith(start) and path and _inside(path) else None


def find_spec(module):
    """Returns the spec of the package or a folder of it, None for any other name."""
    folder = _folder(module)
    if folder is None:
        return None
    import importlib.machinery

    return importlib.machinery.ModuleSpec(module, _Loader(folder), is_package=True)
