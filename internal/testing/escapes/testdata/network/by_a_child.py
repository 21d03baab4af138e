# makes a child process connect
# ends: variously
# local: network seccomp landlock
import os, socket
pid = os.fork()
if pid == 0:
    try: socket.create_connection(('127.0.0.1', CANARY_TCP), 2)
    finally: os._exit(0)
os.waitpid(pid, 0)
