# leaves a link to a file of the host through /proc
import os
os.chdir(CANARY_OUT)
os.symlink('/proc/self/root' + CANARY_FILE, 'result')
