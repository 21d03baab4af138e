# attacks its session with descriptors that it sends to the host
# ends: variously
import socket
s = socket.socket(fileno=3)
while True: socket.send_fds(s, [bytes(8)], [0] * 200)
