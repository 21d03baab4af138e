# calls a function of the host whose name is long
# unsafe: it is only long, and a decoder keeps it once
import _rlm
_rlm.call('c' + 'x' * 60_000_000 + '\0[[],{}]')
