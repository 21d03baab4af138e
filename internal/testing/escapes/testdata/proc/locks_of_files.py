# reads which files programs of the machine have locked
# docker: masks
# local: mounts landlock namespaces
s = open('/proc/locks').read(999)
print(CANARY_PROOF if s else 1 / 0)
