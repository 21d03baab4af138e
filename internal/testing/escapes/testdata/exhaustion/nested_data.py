# builds a text from nested lists of doubling size
# harm: hangs
# ends: variously
x = ['lol']
for _ in range(40): x = [x, x]
len(str(x))
