# deletes a file of the host
# local: mounts landlock namespaces
import os
os.remove(CANARY_OPEN + '/doomed')
