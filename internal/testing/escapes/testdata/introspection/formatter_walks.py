# reads the environment with string.Formatter
import os, string
class A:
    def __init__(self): pass
print(string.Formatter().vformat('{a.__init__.__globals__[os].environ[RLM_ESCAPE_CANARY]}', (), {'a': A()}))
