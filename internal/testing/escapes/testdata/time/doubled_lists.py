# compares two nested lists of doubling size
# harm: hangs
a, b = [0], [0]
for _ in range(60): a, b = [a, a], [b, b]
a == b
