# makes a socket of datagrams, whose queues are the machine's
# docker: seccomp
# local: seccomp
import socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
print(CANARY_PROOF)
