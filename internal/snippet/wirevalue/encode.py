def _session_encode(given):
    import builtins as b, base64, datetime, decimal
    def encode(value):
        kind = b.type(value)
        if value is None or kind is b.bool or kind is b.str and is_text(value):
            return value
        if kind is b.int:
            return value if -(1 << 53) <= value <= 1 << 53 else {"$int": in_digits(value)}
        if kind is b.float:
            return value if value - value == 0 else {"$float": b.repr(value)}
        if kind is b.list:
            return inside(value, lambda: [encode(part) for part in value])
        if kind is b.tuple:
            return inside(value, lambda: {"$tuple": [encode(part) for part in value]})
        if kind is b.dict:
            return inside(value, lambda: encode_dict(value))
        if kind is b.bytes or kind is b.bytearray:
            return {"$bytes": base64.b64encode(value).decode()}
        if kind is b.set or kind is b.frozenset:
            return {"$" + kind.__name__: [encode(part) for part in value]}
        if kind is datetime.datetime or kind is datetime.date or kind is datetime.time:
            return {"$" + kind.__name__: value.isoformat()}
        if kind is datetime.timedelta:
            return {"$timedelta": [value.days, value.seconds, value.microseconds]}
        if kind is decimal.Decimal:
            return {"$decimal": b.str(value)}
        return describe(value)
    def is_text(value):
        try:
            value.encode()
        except b.UnicodeEncodeError:
            return False
        return True
    def in_digits(value):
        try:
            return b.str(value)
        except b.ValueError:
            raise b.ValueError("the integer has too many digits") from None
    def encode_dict(value):
        if b.all(b.type(key) is b.str and is_text(key) for key in value):
            return {"$" + key if key.startswith("$") else key: encode(part) for key, part in value.items()}
        return {"$dict": [[encode(key), encode(part)] for key, part in value.items()]}
    def inside(value, make):
        if b.id(value) in above:
            return describe(value)
        if b.len(above) > 200:
            raise b.ValueError("the value has more than 200 levels")
        above.add(b.id(value))
        try:
            return make()
        finally:
            above.discard(b.id(value))
    def describe(value):
        try:
            text = b.repr(value)[:1000]
        except b.Exception as error:
            text = "repr() raises " + b.type(error).__name__
        text = text.encode("utf-8", "backslashreplace").decode()
        return {"$object": {"type": b.type(value).__name__, "repr": text}}
    above = b.set()
    return encode(given)
