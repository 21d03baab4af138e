# calls the host with a list that is nested millions of times
import _rlm
_rlm.call('cask\0[[' + '[' * 30_000_000 + ']' * 30_000_000 + '],{}]')
