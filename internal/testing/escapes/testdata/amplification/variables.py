# sends a list of variables that takes fifty times its size when decoded
import _rlm
_rlm.call('v[' + '[],' * 20_000_000 + '[]]')
