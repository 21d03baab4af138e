# Prints the addresses of None and of a list with the addresses of all objects, and its length.
import gc
from array import array
from types import CodeType


def list_objects():
    gc.unfreeze()  # or else the collector would not list what was there before
    found, todo = {}, gc.get_objects()
    found[id(found)] = found[id(todo)] = None
    attributes = type.__dict__["__dict__"].__get__
    while todo:
        value = todo.pop()
        if id(value) in found:
            continue
        found[id(value)] = None
        kind = type(value)
        todo.append(kind)
        if kind is CodeType:  # the collector does not know what it refers to
            todo += (value.co_consts, value.co_names, value.co_filename, value.co_name, value.co_qualname,
                     value.co_linetable, value.co_exceptiontable)
        elif issubclass(kind, type):
            todo += gc.get_referents(attributes(value))  # of a static class, too
            todo += type.__subclasses__(value)
        todo += gc.get_referents(value)
    return array("I", found)


objects = list_objects()
print(id(None), *objects.buffer_info())
