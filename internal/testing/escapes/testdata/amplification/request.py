# sends a request that has no kind
# unsafe: it is only long, and a decoder keeps it once
import _rlm
_rlm.call('?' * 60_000_000)
