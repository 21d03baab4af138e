# reads the kernel's keys
# unsafe: the kernel may have none
s = open('/proc/keys').read()
print(CANARY_PROOF if s else 1 / 0)
