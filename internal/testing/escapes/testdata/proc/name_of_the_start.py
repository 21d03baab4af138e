# reads the number of the machine's start, which tells machines apart
# docker: masks
# local: mounts landlock namespaces
s = open('/proc/sys/kernel/random/boot_id').read(999)
print(CANARY_PROOF if s else 1 / 0)
