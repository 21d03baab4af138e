# reports an exception whose message is long
# unsafe: a decoder makes it shorter
import _rlm
_rlm.call('e{"message":"' + '\\n' * 25_000_000 + '"}')
