"""The guest's end of the wire: requests to the host and JSON both ways.

A request is one byte that names the operation, then its operands; the host's
answer is bytes, text or a HostError. See ../protocol.go for the list.
"""

import _rlm
import json
from json import encoder as _encoder

HostError = _rlm.HostError
HostError.__module__ = "builtins"  # where snippets find it, and what a traceback calls it
call = _rlm.call
text = _rlm.call_str


def plain(value):
    """Converts a value that JSON lacks into the closest JSON value."""
    if isinstance(value, (set, frozenset)):
        items = sorted(value, key=repr)
        try:
            return sorted(items)
        except TypeError:
            return items
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, type):
        return value.__name__
    for name in ("model_dump", "_asdict", "isoformat", "to_dict", "__rlm_list__"):
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


def _referring(value):
    """plain, a lazy text as a reference that the host resolves."""
    ref = getattr(type(value), "__rlm_ref__", None)
    return plain(value) if ref is None else ref(value)


def _make(default):
    # The C encoder, made once: json.dumps with options makes a new one each time.
    return _encoder.c_make_encoder(None, default, _encoder.encode_basestring, None, ": ", ", ", False, False, False)


def key_text(key):
    """Returns what a dict's key becomes in JSON."""
    if key is None:
        return "null"
    for kind, text in ((str, str.__str__), (bool, lambda key: repr(key).lower()), (int, int.__repr__), (float, float.__repr__)):
        if isinstance(key, kind):
            return text(key)
    return str(key)


def _tame(value, default, depth=0):
    """Returns a copy of value in which parts that the encoder refuses are text."""
    if depth > 100:
        raise _EndlessError
    if isinstance(value, dict):
        return {key_text(k): _tame(v, default, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tame(v, default, depth + 1) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return _tame(default(value), default, depth + 1)


texts = set()  # the types of long texts that are str, set by contexts


def _swap(value, method):
    """Returns value with what the method of each long text in it returns."""
    kind = type(value)
    if kind in texts:
        return getattr(value, method)()
    if kind is list or kind is tuple:
        return [_swap(item, method) for item in value]
    if kind is dict:
        return {key: _swap(item, method) for key, item in value.items()}
    return value


_encoders = {plain: _make(plain), _referring: _make(_referring)}


class _EndlessError(Exception):
    """A value contains itself, or is nested too deeply."""


_ENDLESS = "the value contains itself, or is nested more than 100 levels deep, which JSON cannot express: pass a part of it"


def encode(value, default=_referring):
    """Returns value as JSON text. A value with a str() fails only with a TypeError, if it has no
    end."""
    make = _encoders.get(default) or _make(default)
    try:
        if texts:
            value = _swap(value, "__rlm_ref__" if default is _referring else "__rlm_whole__")
        return "".join(make(value, 0))
    except RecursionError:
        raise TypeError(_ENDLESS) from None
    except (TypeError, ValueError):
        pass
    try:
        return "".join(make(_tame(value, default), 0))
    except (_EndlessError, RecursionError):
        raise TypeError(_ENDLESS) from None
    except (TypeError, ValueError):
        return "".join(make(str(value), 0))


def encode_whole(value):
    """value as JSON text, lazy texts as their characters."""
    return encode(value, plain)


_scan = json.JSONDecoder().scan_once


def decode(source):
    """Decodes JSON text from the host, which has no white space around it."""
    return _scan(source, 0)[0]


class Literal(float):
    """A number of JSON with its text, of which a Decimal is made."""

    __slots__ = ("text",)


def read_literal(text):
    number = Literal(text)
    number.text = text
    return number


_scan_literals = json.JSONDecoder(parse_float=read_literal).scan_once
keeps_literals = False  # once a contract has a Decimal in it


def decode_answer(source):
    """Decodes the answers of host functions: their numbers may be Literals, until settle."""
    return (_scan_literals if keeps_literals else _scan)(source, 0)[0]


def settle(value):
    """Returns a value of JSON with plain numbers."""
    if not keeps_literals:
        return value
    if type(value) is Literal:
        return float(value)
    if type(value) is list:
        return [settle(item) for item in value]
    if type(value) is dict:
        return {key: settle(item) for key, item in value.items()}
    return value


def send(op, payload):
    """A request whose payload may hold any str. Surrogates that stand for bytes become these bytes, if
    there are no others: those become their escapes in JSON."""
    try:
        return text(op + payload)
    except UnicodeEncodeError:
        return text(op.encode() + payload.encode("utf-8", "backslashreplace"))


def tell(op, value):
    """A request with a value for people to read, who see the escapes of lone surrogates: for the
    host, those of JSON are all the same character."""
    try:
        payload = encode(value)
    except TypeError:
        payload = encode(str(value))
    try:
        payload.encode()
    except UnicodeEncodeError:
        payload = "".join(f"\\\\u{ord(c):x}" if "\ud800" <= c <= "\udfff" else c for c in payload)
    return text(op + payload)
