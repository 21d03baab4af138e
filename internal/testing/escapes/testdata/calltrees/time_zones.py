# calls functions in C in a tree of time zones
# harm: hangs
# with: calltree
import datetime
def zone(f):
    z = type('Zone', (datetime.tzinfo,), {})()
    z.utcoffset = giving(datetime.timedelta(0), f)
    return z
tree(lambda f: partial(operator.sub, *[datetime.datetime(2000, 1, 1, tzinfo=zone(f)) for _ in '12']))()
