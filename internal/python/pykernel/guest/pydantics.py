"""Makes models.py importable: as rlm_models, and as pydantic where the real one
is not installed. It stands behind the stock finders, so a real one is found first."""

import sys

import lazy

_OWN = "rlm_models"


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in ("pydantic", _OWN):
            return None
        import importlib.machinery

        return importlib.machinery.ModuleSpec(name, _Finder)

    @staticmethod
    def create_module(spec):
        models = sys.modules[_OWN] = lazy.load("models")  # the state mover finds the classes there
        return models

    @staticmethod
    def exec_module(module):
        pass


def install():
    sys.meta_path.append(_Finder)
