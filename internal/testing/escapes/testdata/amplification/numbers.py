# calls the host with a list of one-digit numbers
import _rlm
_rlm.call('cask\0[[[' + '0,' * 30_000_000 + '0]],{}]')
