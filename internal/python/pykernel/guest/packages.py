"""Imports the Python packages that the host has for the session.

A module of the standard library is never replaced. Any other is found here before it is
found on sys.path, so that a package has the version which the session asked for.
"""

import sys

import resources
import wire

_STANDARD = getattr(sys, "stdlib_module_names", ())  # unknown before CPython 3.10
_ROOT = "/packages"  # where tracebacks say that the files are


def _read(path):
    try:
        return wire.call("m" + path)
    except wire.HostError as error:
        raise OSError(str(error)) from None


_tree = resources.Tree(_ROOT, lambda: wire.decode(wire.text("m")), _read)


class _Loader:
    """The loader of a module, or of a package without code if its path is None."""

    def __init__(self, path, folder):
        self.path, self._folder = path, folder

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if self.path is not None:
            exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name):
        return compile(self.get_data(self.path), f"{_ROOT}/{self.path}", "exec", dont_inherit=True)

    def get_source(self, name):
        import importlib.util

        return None if self.path is None else importlib.util.decode_source(self.get_data(self.path))

    def get_data(self, path):
        return _read(str(path).removeprefix(f"{_ROOT}/"))

    def is_package(self, name):
        return self._folder is not None

    def get_resource_reader(self, name):
        return None if self._folder is None else resources.Reader(_tree.at(self._folder))


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in _STANDARD:
            return None
        place = name.replace(".", "/")
        if _tree.has_file(f"{place}/__init__.py"):
            return _spec(name, f"{place}/__init__.py", place)
        if _tree.has_file(f"{place}.py"):
            return _spec(name, f"{place}.py", None)
        if _tree.has_folder(place) and place:
            return _spec(name, None, place)
        return None

    @staticmethod
    def find_distributions(context=None):
        wanted = getattr(context, "name", None)
        for name in _tree.folders()[""]:
            project = name.removesuffix(".dist-info")
            if project != name and (wanted is None or _normal(wanted) == _normal(project.partition("-")[0])):
                yield _distribution(name)

    @staticmethod
    def invalidate_caches():
        pass


def _normal(name):
    import re

    return re.sub("[-_.]+", "-", name).lower()


def _spec(name, path, folder):
    import importlib.machinery

    file = path and f"{_ROOT}/{path}"
    spec = importlib.machinery.ModuleSpec(name, _Loader(path, folder), origin=file, is_package=folder is not None)
    if folder is not None:
        spec.submodule_search_locations.append(f"{_ROOT}/{folder}")
    spec.has_location = path is not None
    return spec


def _distribution(folder):
    import importlib.metadata

    class Distribution(importlib.metadata.Distribution):
        def read_text(self, filename):
            file = _tree.at(f"{folder}/{filename}")
            return file.read_text() if file.is_file() else None

        def locate_file(self, path):
            return _tree.at(str(path))

    return Distribution()


def install():
    """Has the packages found, before those on sys.path if it is known what is standard."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0 if _STANDARD else len(sys.meta_path) - 1, _Finder)
