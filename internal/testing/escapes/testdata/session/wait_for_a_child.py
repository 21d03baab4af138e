# attacks its session by a wait for a child
# ends: variously
import subprocess
subprocess.run(['sleep', '600'])
