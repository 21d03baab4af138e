# leaves 9000 files
import os
os.chdir(CANARY_OUT)
for i in range(9000): open(str(i), 'w').close()
