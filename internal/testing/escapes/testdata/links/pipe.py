# leaves a named pipe
import os
os.chdir(CANARY_OUT)
os.mkfifo('pipe')
