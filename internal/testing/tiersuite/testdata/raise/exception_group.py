# A nested exception group, each member with its own traceback.
def fail(e):
    raise e


def collect():
    errs = []
    for e in (ValueError("first"), KeyError("k")):
        try:
            fail(e)
        except Exception as x:
            errs.append(x)
    try:
        raise ExceptionGroup("inner", [TypeError("t")])
    except ExceptionGroup as g:
        errs.append(g)
    return errs


raise ExceptionGroup("several things", collect())
