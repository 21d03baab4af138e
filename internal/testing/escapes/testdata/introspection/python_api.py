# runs source by CPython's own C interface
import ctypes
if ctypes.pythonapi.PyRun_SimpleString(('open(' + repr(CANARY_OPEN) + ' + "/api", "w").close()').encode()): raise OSError('refused')
