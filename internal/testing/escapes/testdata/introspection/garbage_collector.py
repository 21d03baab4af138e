# looks for modules among all objects
import gc, types
m = [o for o in gc.get_objects() if isinstance(o, types.ModuleType) and o.__name__ == 'io'][0]
print(m.open(CANARY_FILE).read())
