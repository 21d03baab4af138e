# reads the environment
import os
print(os.environ['RLM_ESCAPE_CANARY'])
