# attacks its session with a timer that ends the process
# ends: variously
import signal, os
signal.signal(signal.SIGALRM, lambda *a: os._exit(1))
signal.setitimer(signal.ITIMER_REAL, 0.2)
