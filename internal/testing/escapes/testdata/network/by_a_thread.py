# makes a thread connect
# ends: variously
# local: network seccomp landlock
import socket, threading
t = threading.Thread(target=lambda: socket.create_connection(('127.0.0.1', CANARY_TCP), 2))
t.start()
t.join()
