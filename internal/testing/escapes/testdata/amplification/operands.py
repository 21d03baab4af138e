# calls the host with millions of operands where two belong
import _rlm
_rlm.call('cask\0[' + '[],' * 20_000_000 + '[]]')
