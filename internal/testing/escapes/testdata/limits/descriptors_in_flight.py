# sends 20,000 descriptors that nobody receives
# root: other users have a limit
# fresh: it has no descriptors left
import os, socket
held = []
for _ in range(100):
    a, b = socket.socketpair()
    held += [a, b]
    socket.send_fds(a, [b'x'], [0] * 200)
print(CANARY_PROOF)
