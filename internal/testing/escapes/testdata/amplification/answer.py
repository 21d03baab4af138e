# gives an answer that takes fifty times its size when decoded
import _rlm
_rlm.call('f{"value":[' + '[],' * 20_000_000 + '[]]}')
