# attacks its session by a flood by a child
# ends: variously
import subprocess
subprocess.run(['yes'])
