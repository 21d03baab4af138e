# leaves an importer for the next tenant
# one: process
import sys, types
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == 'rlm_forged':
            import importlib.machinery
            return importlib.machinery.ModuleSpec(name, Finder)
    create_module = staticmethod(lambda spec: None)
    exec_module = staticmethod(lambda module: None)
sys.meta_path.insert(0, Finder)
# in the next sandbox
import rlm_forged
print(CANARY_PROOF)
