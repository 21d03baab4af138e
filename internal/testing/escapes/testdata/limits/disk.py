# fills the disk
# local: mounts landlock namespaces
# docker: tmpfs
# fresh: its disk is full
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
for i in range(3):
    with open(f'f{i}', 'wb') as f: f.write(bytes(30 << 20))
print(CANARY_PROOF)
