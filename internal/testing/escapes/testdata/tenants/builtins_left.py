# changes a builtin for the next tenant
# one: process
import builtins
builtins.len = lambda of: 41
# in the next sandbox
if len([]) == 41: print(CANARY_PROOF)
