# The builtins of a reflection's snippets. A name that is None here is not meant to be
# used; what keeps a snippet in its place is the sandbox, not this. Modules that a
# snippet imports have the stock builtins, and `import` works.
import builtins as _builtins


def _namespace(stock):
    def safe_getattr(obj, name, *default):
        """getattr for names that do not begin with an underscore."""
        if name.startswith("_"):
            raise AttributeError(f"Access to '{name}' blocked")
        return stock.getattr(obj, name, *default)

    own = dict(vars(stock))
    own.update(dict.fromkeys(("open", "eval", "exec", "compile", "input", "globals", "locals", "breakpoint", "memoryview")))
    own["getattr"] = own["safe_getattr"] = safe_getattr
    return own


__builtins__ = _namespace(_builtins)
__import__ = None  # the statement takes the one of the builtins
del _namespace, _builtins
