# connects a pair of datagram sockets anew, to a name of the host
# docker: seccomp
# local: seccomp
import socket
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
print(CANARY_PROOF)
