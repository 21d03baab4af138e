# takes and returns memory in a loop
# harm: hangs
while True: bytes(100_000_000)
