# has a program kill it
import subprocess
subprocess.run(['/bin/sh', '-c', 'kill -9 %d' % CANARY_VICTIM], check=True)
import time
time.sleep(0.1)
