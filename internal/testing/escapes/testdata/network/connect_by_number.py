# connects to loopback with the address as one number
# local: network seccomp landlock
import socket
socket.create_connection(('2130706433', CANARY_TCP), 2)
