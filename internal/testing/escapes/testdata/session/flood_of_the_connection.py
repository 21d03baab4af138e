# attacks its session with a flood of the connection
# ends: variously
import os
while True: os.write(3, bytes(1 << 16))
