# makes sockets of all other families
# local: seccomp
# docker: seccomp
import socket
for family in range(2, 46):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind)
            print(CANARY_PROOF)
        except OSError as e: last = e
raise last
