# lists the modules of the kernel
# fake: /proc/ modules
s = open('/proc/modules').read(999)
print(CANARY_PROOF if s else 1 / 0)
