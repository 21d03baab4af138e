"""The package tzdata, from which zoneinfo takes the zones that the system lacks.

The host has the data. Here is the layout that the package has on PyPI: the resource
`zones` lists the names, and `zoneinfo.Europe` has the resource `Berlin`.
"""

import resources
import wire

_ROOT = "tzdata"
_names = ()  # of all zones, as soon as they are wanted


def _list():
    global _names
    _names = _names or tuple(wire.text("k").split("\n"))
    return _names


def _read(path):
    if path == "zones":
        return "\n".join(_list()).encode()
    return wire.call(f"k{path[len('zoneinfo/'):]}")


_tree = resources.Tree(_ROOT, lambda: ("zones", *(f"zoneinfo/{name}" for name in _list())), _read)


class _Loader:
    def __init__(self, folder):
        self._folder = folder

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        pass

    def get_resource_reader(self, name):
        return resources.Reader(self._folder)


def find_spec(module):
    """Returns the spec of the package or a folder of it, None for any other name."""
    root, _, inside = module.partition(".")
    path = inside.replace(".", "/")
    if root != _ROOT or not _tree.has_folder(path):
        return None
    import importlib.machinery

    return importlib.machinery.ModuleSpec(module, _Loader(_tree.at(path)), is_package=True)
