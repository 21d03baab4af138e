# reads a file in an exit handler
import atexit
atexit.register(lambda: print(open(CANARY_FILE).read()))
atexit._run_exitfuncs()
