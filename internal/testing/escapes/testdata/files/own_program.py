# writes a program and runs it
# fresh: its script may shadow a name
# local: mounts landlock namespaces
import os
try: os.chdir(CANARY_OPEN)
except OSError: pass
open('p', 'w').write('#!' + os.path.realpath('/proc/self/exe') + '\nprint(' + repr(CANARY_PROOF) + ')')
os.chmod('p', 0o755)
import subprocess
print(subprocess.run(['./p'], capture_output=True, check=True).stdout.decode())
