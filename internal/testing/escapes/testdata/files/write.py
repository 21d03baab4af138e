# makes a file on the host
# local: mounts landlock namespaces
open(CANARY_OPEN + '/written', 'w').close()
