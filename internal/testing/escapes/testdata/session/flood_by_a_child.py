# attacks its session with a flood from a child
# ends: variously
import subprocess
subprocess.run(['yes'])
