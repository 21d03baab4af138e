# reads by the syntax error of a file that is no Python
import runpy
try: runpy.run_path(CANARY_FILE)
except (SyntaxError, NameError):
    import linecache
    print(linecache.getlines(CANARY_FILE))
