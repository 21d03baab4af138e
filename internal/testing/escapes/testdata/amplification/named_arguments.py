# calls the host with millions of named arguments
import _rlm
_rlm.call('cask\0[[],{' + '"":0,' * 12_000_000 + '"":0}]')
