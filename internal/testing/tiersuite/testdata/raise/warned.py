# Warnings that nobody catches are shown, with their lines.
import warnings

warnings.warn("careful")
warnings.warn("old", DeprecationWarning)
warnings.warn("later", PendingDeprecationWarning)


class Own(RuntimeWarning):
    pass


def lib():
    warnings.warn("from the caller", Own, stacklevel=2)


for _ in range(2):
    lib()
async def forgotten():
    pass


forgotten()
1 / 0
