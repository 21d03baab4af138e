# reads the kernel's keys
# fake: /proc/ keys
s = open('/proc/keys').read()
print(CANARY_PROOF if s else 1 / 0)
