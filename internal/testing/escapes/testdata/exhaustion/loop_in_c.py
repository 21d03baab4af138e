# loops forever in C code
# harm: hangs
sum(range(10 ** 12))
