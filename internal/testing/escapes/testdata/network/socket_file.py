# connects to a socket of the file system
# local: mounts landlock namespaces network seccomp
import socket
s = socket.socket(socket.AF_UNIX)
s.connect(CANARY_SOCKET)
