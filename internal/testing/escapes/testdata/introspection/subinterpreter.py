# writes a file from another interpreter
# fresh: it makes an interpreter
# ends: variously
import _interpreters
i = _interpreters.create()
e = _interpreters.exec(i, 'open(' + repr(CANARY_OPEN) + ' + "/inter", "w").close()')
_interpreters.destroy(i)
if e: raise OSError(e)
