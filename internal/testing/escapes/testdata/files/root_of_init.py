# reads a file through the root of process 1
# fake: /proc/1/ root
print(open('/proc/1/root' + CANARY_FILE).read())
