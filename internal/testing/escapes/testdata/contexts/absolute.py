# reads a file by its whole path
print(context[CANARY_OWN])
