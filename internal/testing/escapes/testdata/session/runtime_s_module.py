# attacks its session through the runtime's module
# ends: variously
import _rlm
for n in list(vars(_rlm)): setattr(_rlm, n, None)
