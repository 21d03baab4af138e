# connects to an abstract socket
# docker: network
# local: network seccomp landlock
import socket
s = socket.socket(socket.AF_UNIX)
s.connect('\0' + CANARY_ABSTRACT)
