# reads its own environment in /proc
s = [x for x in open('/proc/self/environ').read().split('\0') if 'CANARY' in x]
print(s)
