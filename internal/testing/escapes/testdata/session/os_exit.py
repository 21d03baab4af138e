# attacks its session with os._exit
# ends: variously
import os
os._exit(0)
