# reads how busy the machine is
# where: the kernel counts it
s = open('/proc/pressure/memory').read(999)
print(CANARY_PROOF if s else 1 / 0)
