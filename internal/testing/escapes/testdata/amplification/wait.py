# waits for calls with an operand of millions of digits
# unsafe: it is only long, and a decoder keeps it once
import _rlm
_rlm.call('w' + '9' * 60_000_000)
