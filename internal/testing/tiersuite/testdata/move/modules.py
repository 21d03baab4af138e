import collections.abc
import json as j
import os.path
import random
import sys
from statistics import mean

helpers = {"loads": j.loads, "mean": mean, "sys": sys}
error = None
try:
    {}["missing"]
except KeyError as caught:
    error = caught
namespace = globals()
itself = sys.modules["__main__"]
del j
undone = 1
# --- the next snippet ---
print(helpers["loads"]("[1, 2]"), helpers["mean"]([1, 3]), helpers["sys"] is sys, os.path.join("a", "b"))
print(repr(error), isinstance([], collections.abc.Sequence), namespace is globals(), itself is sys.modules["__main__"])
print("j" in globals(), namespace["undone"], random.choice([7]))
undone += 1
# --- the next snippet ---
print(namespace["undone"], itself.undone)
