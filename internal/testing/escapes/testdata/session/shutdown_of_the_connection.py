# attacks its session by a shutdown of the connection
# ends: variously
import socket
socket.socket(fileno=3).shutdown(2)
