# leaves a link that climbs
import os
os.chdir(CANARY_OUT)
os.symlink('../' * 20 + CANARY_FILE.lstrip('/'), 'result')
