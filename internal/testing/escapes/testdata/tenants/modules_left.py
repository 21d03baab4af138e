# changes a module for the next tenant
# one: process
import json, sys
json.loads = lambda text: 'forged'
sys.modules['rlm_for_the_next'] = json
# in the next sandbox
import json
if json.loads('1') == 'forged': print(CANARY_PROOF)
