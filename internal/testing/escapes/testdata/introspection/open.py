# opens a file by its builtin
# local: mounts landlock namespaces
print(open(CANARY_FILE).read())
