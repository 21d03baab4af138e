# reads a file with the get_data of an import loader
import importlib.machinery
print(importlib.machinery.SourceFileLoader('x', CANARY_FILE).get_data(CANARY_FILE).decode())
