# from None hides the context.
try:
    int("x")
except ValueError:
    raise RuntimeError("clean message") from None
