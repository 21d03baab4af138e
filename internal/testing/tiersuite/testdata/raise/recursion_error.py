# Repeated frames are folded into one line.
def down(n):
    return down(n + 1)


down(0)
