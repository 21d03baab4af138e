# leaves a hook that sees the code of the next tenant
# one: process
import sys
seen = []
sys.addaudithook(lambda event, args: seen.append(event) if event == 'compile' else None)
# in the next sandbox
compile('1', 'x', 'eval')
if globals().get('seen'): print(CANARY_PROOF)
