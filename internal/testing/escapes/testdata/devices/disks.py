# opens the disks
# fake: /dev/ sda
# ends: variously
import os
for n in os.listdir('/dev/'):
    if n[:2] in ('sd', 'vd', 'xv', 'nv', 'lo', 'dm'):
        try: os.open('/dev/' + n, os.O_RDONLY)
        except OSError: continue
        print(CANARY_PROOF)
