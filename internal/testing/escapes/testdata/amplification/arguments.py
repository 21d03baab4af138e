# calls the host with millions of empty arguments
import _rlm
_rlm.call('cask\0[[' + '[],' * 20_000_000 + '[]],{}]')
