# attacks its session by flooding the connection
# ends: variously
import os
while True: os.write(3, bytes(1 << 16))
