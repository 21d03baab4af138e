# asks for billions of parts of a text
# unsafe: only a host that reserves what it is asked for would pay
import _rlm
_rlm.call('tl0,0,1,0,0,999999999999,')
