# types into the terminal
# root: it is the right of root
# before: import os; os.dup2(os.openpty()[1], 0)
import fcntl, termios
fcntl.ioctl(0, termios.TIOCSTI, b'x')
print(CANARY_PROOF)
