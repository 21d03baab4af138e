# opens devices of virtual machines, networks and file systems
# fake: /dev/ kvm
import os
done = 0
for n in ('kvm', 'net/tun', 'fuse', 'loop-control', 'vhost-net', 'uinput', 'hpet', 'rtc0', 'mapper/control'):
    try:
        os.open('/dev/' + n, os.O_RDONLY)
        done = 1
    except OSError as e: last = e
if not done: raise last
print(CANARY_PROOF)
