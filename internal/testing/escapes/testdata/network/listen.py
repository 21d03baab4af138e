# listens on a port
# docker: seccomp
# local: network seccomp landlock
import socket
s = socket.socket()
s.bind(('127.0.0.1', 0))
s.listen()
print(CANARY_PROOF)
