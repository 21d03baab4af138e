# makes a file in /usr
# fake: /usr/ share
# docker: rootfs privileges seccomp
import os
os.close(os.open('/usr/escape-probe', os.O_CREAT | os.O_WRONLY))
print(CANARY_PROOF)
