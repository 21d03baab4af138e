# reads the environment of all processes
import glob
# CANARY_VICTIM
for n in glob.glob('/proc/[0-9]*/environ'):
    try: print(s) if 'canary' in (s := open(n).read()) else 0
    except OSError: pass
