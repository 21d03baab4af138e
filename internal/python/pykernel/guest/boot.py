# Runs in the C runner's boot, with `sources`: a dict of module name -> source.
# The kernel's modules import one another by plain names; they are taken out of
# sys.modules again, so that a snippet's `import run` finds nothing of ours.
import sys
import types

import _rlm


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name in sources:
            import importlib.machinery

            return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        # Warnings pass over frames of files named like importlib's: they name the
        # snippet's line also where we stand between it and the library.
        file = f"<rlm {module.__name__}.py, as importlib._bootstrap>"
        loaded[module.__name__] = module
        source = sources[module.__name__]
        exec(stock.get(source) or compile(source, file, "exec"), module.__dict__)


stock = getattr(_rlm, "stock", {})  # source -> its code, of what was compiled ahead
if getattr(_rlm, "native", False):  # there are threads, and locks that wait for them
    sources["events"] = sources["nativeevents"]
    sources["locks"] = "import _thread\nlock, RLock = _thread.LockType, _thread.RLock\ndef install(): pass"
    sources["threads"] = "def install(): pass\njoin_all = stop_all = install"
loaded = {}  # name -> module
finder = _Finder()


def load(name):
    """A kernel module. The others are in sys.modules while it is loaded, in place
    of what a snippet may have under their names."""
    if name not in loaded:
        hidden = {other: sys.modules.pop(other) for other in sources if other in sys.modules}
        sys.modules.update(loaded)
        sys.meta_path.insert(0, finder)
        try:
            __import__(name)
        finally:
            sys.meta_path.remove(finder)
            for other in loaded:
                sys.modules.pop(other, None)
            sys.modules.update(hidden)
    return loaded[name]


run = load("run")
loaded["lazy"].load = load
if not getattr(_rlm, "native", False):
    for name in ("models", "zones", "helping", "packages", "tables", "tallies", "described"):
        load(name)
    sources.clear()
run.kernel_modules = loaded
run.prepare()
_rlm.set_run(run.run)
run.rehearse()
