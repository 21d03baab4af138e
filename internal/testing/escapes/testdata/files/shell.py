# makes a shell read a file
# local: mounts landlock namespaces
import os
if os.system('cat ' + CANARY_FILE): raise OSError('refused')
