# makes 5000 files
# local: mounts landlock namespaces
# docker: tmpfs
# fresh: its disk is full
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
for i in range(5000): open(f'i{i}', 'w').close()
print(CANARY_PROOF)
