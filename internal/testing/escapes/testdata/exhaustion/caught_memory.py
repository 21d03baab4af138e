# continues after running out of memory
# harm: grows
# ends: variously
x = []
while True:
    try: x.append(bytearray(1 << 20))
    except MemoryError: pass
