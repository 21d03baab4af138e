"""Folders of files that the host reads, as importlib.resources wants them."""

import errno
import io


class Tree:
    """Files by their paths. `paths` returns the paths of all of them when they are first
    wanted, and `read` the bytes of one."""

    def __init__(self, name, paths, read):
        self.name, self.read = name, read
        self._paths, self._folders = paths, None

    def folders(self):
        """Returns the names in each folder, by the folder's path."""
        if self._folders is None:
            folders = {"": set()}
            for path in self._paths():
                while path:
                    folder, _, name = path.rpartition("/")
                    inside = folders.setdefault(folder, set())
                    if name in inside:
                        break
                    inside.add(name)
                    path = folder
            self._folders = folders
        return self._folders

    def has_file(self, path):
        folder, _, name = path.rpartition("/")
        return name in self.folders().get(folder, ()) and path not in self.folders()

    def has_folder(self, path):
        return path in self.folders()

    def at(self, path):
        """Returns the file or folder at a path, whether it exists or not."""
        return (Folder if self.has_folder(path) else File)(self, path)


class _Entry:
    def __init__(self, tree, path):
        self._tree, self._path = tree, path
        self.name = path.rpartition("/")[2] or tree.name

    def __str__(self):
        return f"{self._tree.name}/{self._path}".rstrip("/")

    @property
    def parent(self):
        return self._tree.at(self._path.rpartition("/")[0])

    def joinpath(self, *parts):
        path = "/".join(part for part in (self._path, *map(str, parts)) if part)
        return self._tree.at(path)

    __truediv__ = joinpath

    def is_file(self):
        return self._tree.has_file(self._path)

    def is_dir(self):
        return self._tree.has_folder(self._path)

    def exists(self):
        return self.is_file() or self.is_dir()

    def __reduce__(self):  # in another tier, it is found by its package
        import importlib.resources
        import operator

        package, _, inside = self._path.partition("/")
        if not inside:
            return importlib.resources.files, (package,)
        return operator.methodcaller("joinpath", *inside.split("/")), (self._tree.at(package),)


class File(_Entry):
    """A file, whether it exists or not."""

    def read_bytes(self):
        if not self.is_file():
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(self))
        return self._tree.read(self._path)

    def read_text(self, encoding=None, errors="strict"):
        return self.read_bytes().decode(encoding or "utf-8", errors)

    def open(self, mode="r", *args, **kwargs):
        file = io.BytesIO(self.read_bytes())
        return file if "b" in mode else io.TextIOWrapper(file, *args, **kwargs)

    def iterdir(self):
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(self))


class Folder(_Entry):
    """A folder that exists."""

    def iterdir(self):
        return (self.joinpath(name) for name in sorted(self._tree.folders()[self._path]))

    def open(self, *args, **kwargs):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", str(self))

    read_bytes = read_text = open


class Reader:
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
        return [entry.name for entry in self._folder.iterdir()]
