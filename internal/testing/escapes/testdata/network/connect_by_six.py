# connects to loopback over IPv6
import socket
s = socket.socket(socket.AF_INET6)
s.settimeout(2)
s.connect(('::ffff:127.0.0.1', CANARY_TCP))
