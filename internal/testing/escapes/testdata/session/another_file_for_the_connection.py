# attacks its session by replacing the connection's file
# ends: variously
import os
os.dup2(os.open('/dev/null', os.O_RDWR), 3)
