from __future__ import annotations

import contextlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import a_module_that_nobody_has
    from another_one import Table


def plot(table: Table):
    import a_module_that_nobody_has as plt

    return plt.show(table)


class Report:
    def save(self):
        from another_one import writer

        writer.save(self)


try:
    import a_module_that_nobody_has
except ImportError as error:
    a_module_that_nobody_has = None
    print(type(error).__name__, error)

try:
    from another_one import Table
except (ImportError, AttributeError):
    print("no Table")

with contextlib.suppress(ImportError):
    import another_one
    print("never")

print(importlib.util.find_spec("another_one"), eval("1 + 1"))
try:
    plot(1)
except ModuleNotFoundError as error:
    print(error.name)
