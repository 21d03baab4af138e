# leaves a link to a file of the host among its files
import os
os.chdir(CANARY_OUT)
os.symlink(CANARY_FILE, 'result')
