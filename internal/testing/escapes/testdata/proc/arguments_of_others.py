# reads the arguments of all processes
# local: mounts landlock namespaces
import glob
# CANARY_VICTIM
for n in glob.glob('/proc/[0-9]*/cmdline'):
    try: print(s) if 'canary' in (s := open(n).read()) else 0
    except OSError: pass
