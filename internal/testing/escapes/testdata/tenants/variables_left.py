# leaves a variable for the next tenant
# one: process
mine = CANARY_PROOF
# in the next sandbox
print(globals().get('mine'))
