# reads the kernel's symbols
# docker: masks
# local: mounts landlock namespaces
s = open('/proc/kallsyms').read(99)
print(CANARY_PROOF if s else 1 / 0)
