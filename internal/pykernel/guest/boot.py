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
        modules.append(module)
        exec(compile(sources[module.__name__], file, "exec"), module.__dict__)


if getattr(_rlm, "native", False):  # there are threads, and locks that wait for them
    sources["events"] = sources["nativeevents"]
    sources["locks"] = "import _thread\nlock = _thread.LockType\ndef install(): pass"
modules = []
finder = _Finder()
sys.meta_path.insert(0, finder)
import run

run.kernel_modules[:] = modules
run.prepare()
for _module in modules:
    del sys.modules[_module.__name__]
sys.meta_path.remove(finder)
_rlm.set_run(run.run)
run.rehearse()
