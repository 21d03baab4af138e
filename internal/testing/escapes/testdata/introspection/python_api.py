# runs source with CPython's C API
import ctypes
if ctypes.pythonapi.PyRun_SimpleString(('open(' + repr(CANARY_OPEN) + ' + "/api", "w").close()').encode()): raise OSError('refused')
