# replaces a file with a link while the host copies the file
# ends: variously
import os
os.chdir(CANARY_OUT)
open('result', 'w').close()
if os.fork() == 0:
    import time
    end = time.time() + 3
    while time.time() < end:
        os.symlink(CANARY_FILE, 'next')
        os.rename('next', 'result')
        open('next', 'w').close()
        os.rename('next', 'result')
    os._exit(0)
import time
time.sleep(0.2)
