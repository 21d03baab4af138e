# imports a module by a name joined from two parts
m = __import__('o' + 's')
print(m.read(m.open(CANARY_FILE, 0), 99).decode())
