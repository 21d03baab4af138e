# starts calls of the host with long arguments and waits for none
# ends: variously
import _rlm
for _ in range(20):
    _rlm.call('sask\0[[[' + '[],' * 2_000_000 + '[]]],{}]')
