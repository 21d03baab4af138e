# calls the host with a list that is nested millions of times
# unsafe: encoding/json refuses such depth itself
import _rlm
_rlm.call('cask\0[[' + '[' * 30_000_000 + ']' * 30_000_000 + '],{}]')
