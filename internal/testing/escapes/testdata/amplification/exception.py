# reports an exception whose message is long
import _rlm
_rlm.call('e{"message":"' + '\\n' * 25_000_000 + '"}')
