# writes from another interpreter
# fresh: it makes an interpreter
# ends: variously
import _interpreters
i = _interpreters.create()
if e := _interpreters.exec(i, 'open(' + repr(CANARY_OPEN) + ' + "/inter", "w").close()'): raise OSError(e)
