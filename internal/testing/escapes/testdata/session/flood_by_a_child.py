# attacks its session with a child that prints endlessly
# ends: variously
import subprocess
subprocess.run(['yes'])
