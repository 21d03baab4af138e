# reads a file with os.open
# local: mounts landlock namespaces
import os
print(os.read(os.open(CANARY_FILE, os.O_RDONLY), 99).decode())
