# reads a file through /proc/self/cwd
# local: mounts landlock namespaces
print(open('/proc/self/cwd/' + '../' * 20 + CANARY_FILE.lstrip('/')).read())
