# doubles nested lists
# harm: hangs
# ends: variously
x = ['lol']
for _ in range(40): x = [x, x]
len(str(x))
