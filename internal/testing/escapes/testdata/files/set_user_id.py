# runs a set-user-ID program that reads for it
# local: mounts landlock namespaces seccomp privileges
# root: the program must belong to another user
import subprocess
print(subprocess.run([CANARY_PROGRAM, CANARY_OWN], capture_output=True, check=True).stdout.decode())
