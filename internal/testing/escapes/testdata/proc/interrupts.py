# counts the interrupts of each processor, which tell of keys and packets
# docker: masks
# local: mounts landlock namespaces
s = open('/proc/interrupts').read(999)
print(CANARY_PROOF if s else 1 / 0)
