# calls the host with one argument that is a list of millions
import _rlm
_rlm.call('cask\0[[[' + '[],' * 20_000_000 + '[]]],{}]')
