# links a file of the host, hard
import os
os.link(CANARY_FILE, CANARY_OUT + '/x')
