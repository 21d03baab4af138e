# leaves a variable of the environment for the next tenant
# one: process
import os
os.environ['RLM_MINE'] = CANARY_PROOF
# in the next sandbox
import os
print(os.environ.get('RLM_MINE'))
