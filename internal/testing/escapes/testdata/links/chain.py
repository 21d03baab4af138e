# leaves links that lead to one another
import os
os.chdir(CANARY_OUT)
os.symlink(CANARY_FILE, 'c')
os.symlink('c', 'b')
os.symlink('b', 'a')
