# prints one endless line
# harm: floods
import sys
while True: sys.stdout.write('flood ' * 100)
