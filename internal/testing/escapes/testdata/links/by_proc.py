# leaves a link through /proc
import os
os.chdir(CANARY_OUT)
os.symlink('/proc/self/root' + CANARY_FILE, 'result')
