# waits for calls with an operand of millions of digits
import _rlm
_rlm.call('w' + '9' * 60_000_000)
