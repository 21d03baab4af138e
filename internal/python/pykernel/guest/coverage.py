"""What map_llm(cover=True) returns: a value for each record, or the reason why there is none."""

import collections
import os

import hostcall
import protocol
import queries

_map = hostcall.HostFunction("map_llm")
_lack = hostcall.HostFunction(protocol.LACK)


def cover(prompt, records, schema, model):
    """Asks for a value for each record."""
    if any(isinstance(record, queries.SubCallError) for record in records):
        raise TypeError("map_llm: a record is a sub-call that failed: repeat that call first, or leave the record out")
    covered = Coverage([None] * len(records), records, (prompt, schema, model), os.urandom(8).hex())
    covered._ask(range(len(records)), model)
    return covered


class Coverage(list):
    """The values of all records, in order. While a record has none, nothing can read or
    count the others as if they were all: that raises, and says what to do."""

    __module__ = "__main__"

    def __init__(self, values, records, asked, key):
        list.__init__(self, values)
        self.records, self._asked, self._key = records, asked, key
        self._count_gaps()

    def fields(self):
        """What makes the same object again."""
        return list(list.__iter__(self)), self.records, self._asked, self._key

    def _count_gaps(self):
        self._gaps = len(self._open())

    def _open(self):
        return [i for i, value in enumerate(list.__iter__(self)) if _is_gap(value)]

    def _ask(self, indices, model):
        """Puts new values in the places of some records."""
        if not indices:
            return
        prompt, schema, _ = self._asked
        _, named, rebuild = queries.take_type((), {"schema": schema, "model": model})
        values = _map(prompt, [self.records[i] for i in indices], cover=True, **named)
        for i, value in zip(indices, values, strict=True):
            list.__setitem__(self, i, _rebuilt(value, rebuild))
        self._count_gaps()

    @property
    def missing(self):
        """The records without a value: each with its index, the record and the reason."""
        return [queries.Prediction(index=i, record=self.records[i], reason=list.__getitem__(self, i).error)
                for i in self._open()]

    @property
    def counts(self):
        """How often each value occurs, most frequent first."""
        counts = collections.Counter(value if value.__hash__ else repr(value) for value in self)
        counts = collections.Counter(dict(counts.most_common()))
        for label in _labels(self._asked[1]):
            counts.setdefault(label, 0)
        return counts

    def retry(self, model=None):
        """Asks again for the records without a value. Returns the same object."""
        self._ask(self._open(), model or self._asked[2])
        return self

    def partial(self):
        """Returns the values, None for each record without one. The run reports the gap."""
        if self._gaps:
            _lack(self._key, self._gaps, len(self))
        return [None if _is_gap(value) else value for value in list.__iter__(self)]

    def _refuse(self):
        first = self.missing[0]
        raise RuntimeError(  # which no encoder takes for a value that it cannot write
            f"map_llm: {self._gaps:,} of {len(self):,} records have no value, the first at index {first.index}: "
            f"{first.reason[:300]}. On the result, .retry() asks again for them and .missing lists them; "
            ".partial() gives None in their place, and the run reports the gap")

    def __getitem__(self, key):
        value = list.__getitem__(self, key)
        if _is_gap(value) or isinstance(key, slice) and any(map(_is_gap, value)):
            self._refuse()
        return value

    def __setitem__(self, key, value):
        list.__setitem__(self, key, value)
        self._count_gaps()

    def __radd__(self, other):  # without it, list + this would copy the gaps
        return other + list(self) if isinstance(other, list) else NotImplemented

    def __repr__(self):
        if self._gaps:
            return f"<{len(self):,} records, {self._gaps:,} of them without a value: see .missing>"
        return list.__repr__(self)


def _guarded(method):
    def guarded(self, *args, **kwargs):
        if self._gaps:
            self._refuse()
        return method(self, *args, **kwargs)

    guarded.__name__ = method.__name__
    return guarded


for _name in ("__iter__ __reversed__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __add__ __iadd__ __mul__ "
              "__rmul__ __imul__ __delitem__ append clear copy count extend index insert pop remove reverse sort").split():
    setattr(Coverage, _name, _guarded(getattr(list, _name)))


def _is_gap(value):
    return isinstance(value, queries.SubCallError)


def _rebuilt(value, rebuild):
    """Returns a value of its type, or the error that takes its place."""
    try:
        return queries.slot(value, rebuild)
    except Exception as error:  # of the snippet's own class
        return queries.SubCallError(f"Error: {type(error).__name__}: {error}")


def _labels(schema):
    """Returns the values among which a type lets choose, none for other types."""
    _, named, rebuild = queries.take_type((), {"schema": schema})
    contract = named.get("schema")
    if not isinstance(contract, dict):
        return []
    name = str(contract.get("$ref", "")).removeprefix("#/$defs/")
    options = contract.get("$defs", {}).get(name, contract).get("enum", ())
    return [option if rebuild is None else rebuild(option) for option in options]
