# computes a power modulo a number of 200,000 bits
# harm: hangs
x = pow(3, 1 << 200_000, (1 << 200_000) - 1)
