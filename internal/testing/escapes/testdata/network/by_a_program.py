# makes a shell connect
# local: network seccomp landlock
import subprocess
subprocess.run(['bash', '-c', 'exec 9<>/dev/tcp/127.0.0.1/%d' % CANARY_TCP], check=True, capture_output=True)
