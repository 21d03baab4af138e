# asks for billions of matches in a text
import _rlm
_rlm.call('tx0,0,1,0,999999999999,' + 'a?' * 1_000_000)
