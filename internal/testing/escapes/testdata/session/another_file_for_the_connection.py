# attacks its session by another file for the connection
# ends: variously
import os
os.dup2(os.open('/dev/null', os.O_RDWR), 3)
