# attacks its session with random bytes on the connection
# ends: variously
import os
os.write(3, os.urandom(1 << 16))
