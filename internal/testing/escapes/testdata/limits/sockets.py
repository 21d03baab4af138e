# keeps 700 MiB in sockets
# root: it is the right of root
# fresh: it has no descriptors left
# ends: variously
import socket
held, ends = 0, []
while held < 700 << 20:
    a, b = socket.socketpair()
    ends += [a, b]
    a.setblocking(False)
    a.setsockopt(socket.SOL_SOCKET, 32, 1 << 28)
    while True:
        try: held += a.send(bytes(65536))
        except BlockingIOError: break
print(CANARY_PROOF)
