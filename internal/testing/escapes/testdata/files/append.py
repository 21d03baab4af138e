# appends to a file of the host
# local: mounts landlock namespaces
open(CANARY_FILE, 'a').write('x')
