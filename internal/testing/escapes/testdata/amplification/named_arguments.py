# calls the host with millions of named arguments
# unsafe: a decoder keeps one of equal names
import _rlm
_rlm.call('cask\0[[],{' + '"":0,' * 12_000_000 + '"":0}]')
