# attacks its session by os._exit
# ends: variously
import os
os._exit(0)
