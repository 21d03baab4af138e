# makes a program read a file
# local: mounts landlock namespaces
import subprocess
print(subprocess.run(['cat', CANARY_FILE], capture_output=True, check=True).stdout.decode())
