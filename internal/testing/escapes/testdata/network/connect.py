# connects to a listener of the host
# docker: network seccomp
# local: network seccomp landlock
import socket
socket.create_connection(('127.0.0.1', CANARY_TCP), 2)
