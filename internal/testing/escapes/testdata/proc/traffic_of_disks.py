# reads what the disks of the machine do
# docker: masks
# local: mounts landlock namespaces
s = open('/proc/diskstats').read(999)
print(CANARY_PROOF if s else 1 / 0)
