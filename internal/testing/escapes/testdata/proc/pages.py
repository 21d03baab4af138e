# reads what the memory of the machine does
# docker: masks
# local: mounts landlock namespaces
s = open('/proc/vmstat').read(999)
print(CANARY_PROOF if s else 1 / 0)
