# takes all memory while the host answers a call
# harm: grows
# ends: variously
# with: late_call
start()
x = []
while True: x.append(bytearray(1 << 20))
