# matches a regular expression that backtracks endlessly
# harm: hangs
import re
re.match(r'(a+)+$', 'a' * 64 + 'b')
