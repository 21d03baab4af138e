# leaves a link with ../
import os
os.chdir(CANARY_OUT)
os.symlink('../' * 20 + CANARY_FILE.lstrip('/'), 'result')
