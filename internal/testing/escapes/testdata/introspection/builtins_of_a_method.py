# takes the builtins from a builtin method
print(print.__self__.__dict__['open'](CANARY_FILE).read())
