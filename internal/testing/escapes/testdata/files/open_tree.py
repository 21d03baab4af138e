# opens a file relative to the root folder
# local: mounts landlock namespaces
import os
d = os.open('/', os.O_RDONLY | os.O_DIRECTORY)
print(os.read(os.open(CANARY_FILE.lstrip('/'), 0, dir_fd=d), 99).decode())
