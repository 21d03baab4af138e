# reads by an import loader's get_data
import importlib.machinery
print(importlib.machinery.SourceFileLoader('x', CANARY_FILE).get_data(CANARY_FILE).decode())
