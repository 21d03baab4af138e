# connects to an abstract socket of the host past the proxy
import socket
s = socket.socket(socket.AF_UNIX)
s.connect('\0' + CANARY_ABSTRACT)
s.send(b'x')
