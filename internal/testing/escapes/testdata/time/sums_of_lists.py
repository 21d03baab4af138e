# adds up a hundred thousand lists
# harm: hangs
sum([[1] * 100] * 100_000, [])
