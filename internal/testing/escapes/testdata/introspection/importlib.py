# imports with importlib
import importlib
print(importlib.import_module('io').open(CANARY_FILE).read())
