# leaves links that lead to one another and then to a file of the host
import os
os.chdir(CANARY_OUT)
os.symlink(CANARY_FILE, 'c')
os.symlink('c', 'b')
os.symlink('b', 'a')
