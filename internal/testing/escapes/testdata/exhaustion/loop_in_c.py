# never ends in C
# harm: hangs
sum(range(10 ** 12))
