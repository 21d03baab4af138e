# makes a program kill a host process
import subprocess
subprocess.run(['/bin/sh', '-c', 'kill -9 %d' % CANARY_VICTIM], check=True)
import time
time.sleep(0.1)
