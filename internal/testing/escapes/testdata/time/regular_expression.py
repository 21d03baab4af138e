# matches a regular expression with many ways to fail
# harm: hangs
import re
re.search('(?:a*)' * 25 + 'b', 'a' * 3000)
