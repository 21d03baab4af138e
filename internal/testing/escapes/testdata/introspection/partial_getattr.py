# calls a function with partial and getattr
import functools, io
print(next(map(functools.partial(getattr, io), ['open']))(CANARY_FILE).read())
