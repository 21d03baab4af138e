# copies memory in a loop
# harm: hangs
x = bytearray(50_000_000)
while True: x[1:] = x[:-1]
