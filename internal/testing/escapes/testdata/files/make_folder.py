# makes a folder on the host
# local: mounts landlock namespaces
import os
os.mkdir(CANARY_OPEN + '/folder')
