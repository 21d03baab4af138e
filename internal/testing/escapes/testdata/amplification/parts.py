# asks for billions of parts of a text
import _rlm
_rlm.call('tl0,0,1,0,0,999999999999,')
