# leaves a file for the next tenant in the folder of the interpreter
# one: process
with open('rlm-for-the-next', 'w') as f: f.write(CANARY_PROOF)
# in the next sandbox
print(open('rlm-for-the-next').read())
