# attacks its session by closing the connection
# ends: variously
import os
os.close(3)
