# calls the host when objects are collected
class D:
    def __del__(self): ask()
for _ in range(30): D()
