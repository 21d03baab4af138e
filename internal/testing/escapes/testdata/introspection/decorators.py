# calls by decorators alone
f = lambda _: CANARY_FILE
@print
@list
@open
@f
class x: pass
