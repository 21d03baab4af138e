"""The guest's end of the wire: requests to the host and JSON both ways.

A request is one byte that names the operation, then its operands; the host's
answer is bytes, text or a HostError. See ../protocol.go for the list.
"""

import _rlm
import json
from json import encoder as _encoder

HostError = _rlm.HostError
call = _rlm.call
text = _rlm.call_str


def _plain(value):
    """What JSON cannot say, said as well as JSON can."""
    ref = getattr(type(value), "__rlm_ref__", None)
    if ref is not None:
        return ref(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, type):
        return value.__name__
    for name in ("model_dump", "_asdict", "isoformat", "to_dict"):
        method = getattr(value, name, None)
        if callable(method):
            return method()
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields}
    if isinstance(getattr(value, "value", None), (str, int, float)) and hasattr(type(value), "__members__"):
        return value.value  # an Enum
    items = getattr(value, "items", None)
    if callable(items) and hasattr(value, "keys"):
        return dict(items())
    return str(value)


# The C encoder, made once: json.dumps with options makes a new one each time.
_encode = _encoder.c_make_encoder(None, _plain, _encoder.encode_basestring, None, ": ", ", ", False, False, False)


def _tame(value, depth=0):
    """A copy of value with every part that _encode refuses turned into text."""
    if depth > 100:
        return str(value)
    if isinstance(value, dict):
        return {k if isinstance(k, str) else str(k): _tame(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tame(v, depth + 1) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return _tame(_plain(value), depth + 1)


def encode(value):
    """value as JSON text; never fails for a value that has a str()."""
    try:
        return "".join(_encode(value, 0))
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return "".join(_encode(_tame(value), 0))
    except (TypeError, ValueError, RecursionError):
        return "".join(_encode(str(value), 0))


_scan = json.JSONDecoder().scan_once


def decode(source):
    """The value of JSON text that the host wrote: no white space around it."""
    return _scan(source, 0)[0]


def send(op, payload):
    """A request whose payload may hold any str, lone surrogates included."""
    try:
        return text(op + payload)
    except UnicodeEncodeError:
        return text((op + payload).encode("utf-8", "replace"))
