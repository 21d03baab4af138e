# attacks its session by waiting for a child
# ends: variously
import subprocess
subprocess.run(['sleep', '600'])
