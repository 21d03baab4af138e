# keeps 700 MiB in pipes
# root: other users have a limit
# fresh: it has no descriptors left
# ends: variously
import fcntl, os
held = 0
while held < 700 << 20:
    r, w = os.pipe()
    os.set_blocking(w, False)
    fcntl.fcntl(w, 1031, 1 << 20)
    while True:
        try: held += os.write(w, bytes(65536))
        except BlockingIOError: break
print(CANARY_PROOF)
