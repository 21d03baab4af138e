# opens a path with many ../
# local: mounts landlock namespaces
print(open('../' * 20 + CANARY_FILE.lstrip('/')).read())
