# reads how the machine was started
# docker: masks
# local: mounts landlock namespaces
s = open('/proc/cmdline').read(999)
print(CANARY_PROOF if s else 1 / 0)
