# hides a link deep in folders
import os
os.chdir(CANARY_OUT)
os.makedirs('a/b/c')
os.symlink(CANARY_FILE, 'a/b/c/result')
