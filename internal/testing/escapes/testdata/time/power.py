# computes a power of 160 million bits
# harm: hangs
x = 3 ** (10 ** 8)
