# reports millions of values that could not move
import _rlm
_rlm.call('l{"left":[' + '{},' * 20_000_000 + '{}]}')
