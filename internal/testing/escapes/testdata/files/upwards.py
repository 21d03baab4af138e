# climbs out by many ..
# local: mounts landlock namespaces
print(open('../' * 20 + CANARY_FILE.lstrip('/')).read())
