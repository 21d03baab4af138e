# sends a request that has no kind
import _rlm
_rlm.call('?' * 60_000_000)
