# leaves a link to a folder of the host
import os
os.chdir(CANARY_OUT)
os.symlink(CANARY_FOLDER, 'results')
