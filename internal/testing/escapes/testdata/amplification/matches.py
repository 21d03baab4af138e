# asks for billions of matches in a text
# unsafe: only a host that reserves what it is asked for would pay
import _rlm
_rlm.call('tx0,0,1,0,999999999999,' + 'a?' * 1_000_000)
