# fetches with urllib
# local: network seccomp landlock
import urllib.request
try: urllib.request.urlopen('http://127.0.0.1:%d/' % CANARY_TCP, timeout=0.3)
except TimeoutError: pass
