# opens a file with the builtin open
# local: mounts landlock namespaces
print(open(CANARY_FILE).read())
