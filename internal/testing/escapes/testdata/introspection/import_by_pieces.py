# imports a module by a name in two pieces
m = __import__('o' + 's')
print(m.read(m.open(CANARY_FILE, 0), 99).decode())
