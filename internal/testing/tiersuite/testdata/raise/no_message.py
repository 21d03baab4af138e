# Exceptions without a message, with an odd one, and with many arguments.
class Plain(Exception):
    pass


try:
    raise Plain
except Plain:
    try:
        raise ValueError("a", 2, None)
    except ValueError:
        raise Plain("\ttab\u00e9\u2028end")
