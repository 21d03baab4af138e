# attacks its session through the runtime's functions
# ends: variously
import gc, types
for o in gc.get_objects():
    if isinstance(o, types.FunctionType) and o.__code__.co_filename.startswith('<rlm'):
        o.__code__ = (lambda *a, **k: 1 / 0).__code__ if not o.__closure__ else o.__code__
