def _session_decode(given):
    import builtins as b, base64, datetime, decimal
    tags = {
        "$int": b.int,
        "$float": b.float,
        "$bytes": base64.b64decode,
        "$tuple": lambda parts: b.tuple([decode(part) for part in parts]),
        "$set": lambda parts: {decode(part) for part in parts},
        "$frozenset": lambda parts: b.frozenset([decode(part) for part in parts]),
        "$dict": lambda pairs: {decode(key): decode(value) for key, value in pairs},
        "$datetime": datetime.datetime.fromisoformat,
        "$date": datetime.date.fromisoformat,
        "$time": datetime.time.fromisoformat,
        "$timedelta": lambda parts: datetime.timedelta(*parts),
        "$decimal": decimal.Decimal,
    }
    def decode(value):
        kind = b.type(value)
        if kind is b.list:
            return [decode(part) for part in value]
        if kind is not b.dict:
            return value
        if b.len(value) == 1:
            for key, inner in value.items():
                if key in tags:
                    return tags[key](inner)
        return {key[1:] if key.startswith("$") else key: decode(inner) for key, inner in value.items()}
    return decode(given)
