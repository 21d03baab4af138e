# attacks its session by a signal to everybody
# ends: variously
import os
os.kill(-1, 9)
