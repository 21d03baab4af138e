# reads a process of the host by its number
# local: mounts landlock namespaces
print(open(f'/proc/{CANARY_VICTIM}/cmdline').read())
