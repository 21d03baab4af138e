# reads a file through the root of process 1
# unsafe: process 1 may be of another machine
print(open('/proc/1/root' + CANARY_FILE).read())
