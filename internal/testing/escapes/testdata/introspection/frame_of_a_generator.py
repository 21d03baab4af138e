# takes the builtins from the frame of a generator
g = (0 for _ in ())
print(g.gi_frame.f_builtins['open'](CANARY_FILE).read())
