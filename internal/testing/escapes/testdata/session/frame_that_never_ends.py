# attacks its session with a frame that begins and never ends
# ends: variously
import os, time
os.write(3, b'\x00\x10\x00\x00q')
time.sleep(600)
