# reports an exception whose type is a list
import _rlm
_rlm.call('e{"type":[' + '[],' * 20_000_000 + '[]]}')
