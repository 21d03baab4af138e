# attacks its session by shutting the connection down
# ends: variously
import socket
socket.socket(fileno=3).shutdown(2)
