# opens ../ relative to every open descriptor
# local: mounts landlock namespaces
import os
for fd in range(256):
    try:
        print(os.read(os.open('../' * 20 + CANARY_FILE.lstrip('/'), 0, dir_fd=fd), 99).decode())
    except OSError: pass
else: print(os.read(os.open(CANARY_FILE, 0, dir_fd=3), 99).decode())
