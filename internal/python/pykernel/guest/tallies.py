"""collections.Counter over the parts of a long text: the host counts equal parts."""

import collections
import marshal

import contexts
import environment
from parts import Parts

_stock = collections._count_elements


def _count_elements(mapping, iterable):
    if type(iterable) is Parts and type(mapping) is collections.Counter and iterable.can_tally and not contexts.is_alone():
        for counts in iterable.tallies():
            if mapping:
                get = mapping.get
                mapping.update({part: n + get(part, 0) for part, n in counts.items()})
            else:
                dict.update(mapping, counts)
    else:
        _stock(mapping, iterable)


def install():
    """Replaces the function that counts for Counter."""
    if collections._count_elements is not _count_elements:
        collections._count_elements = _count_elements
        environment.keep("collections")
