# attacks its session with a child that ignores signals
# ends: variously
import subprocess
subprocess.run(['sh', '-c', 'trap "" INT TERM; while :; do :; done'])
