# leaves a set-user-ID file
import os
os.chdir(CANARY_OUT)
open('tool', 'w').close()
os.chmod('tool', 0o4755)
