# calls a function of the host whose name is long
import _rlm
_rlm.call('c' + 'x' * 60_000_000 + '\0[[],{}]')
