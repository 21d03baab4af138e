# reads a file with a set-user-ID program
# local: mounts landlock namespaces seccomp privileges
# root: the program must belong to another user
import subprocess
print(subprocess.run([CANARY_PROGRAM, CANARY_OWN], capture_output=True, check=True).stdout.decode())
