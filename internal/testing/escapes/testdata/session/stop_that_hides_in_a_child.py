# attacks its session by a stop that hides in a child
# ends: variously
import subprocess
subprocess.run(['bash', '-c', 'trap "" INT TERM; while :; do :; done'])
