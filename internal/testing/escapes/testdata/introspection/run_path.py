# reads a file after running it with runpy
import runpy
try: runpy.run_path(CANARY_FILE)
except (SyntaxError, NameError):
    import linecache
    print(linecache.getlines(CANARY_FILE))
