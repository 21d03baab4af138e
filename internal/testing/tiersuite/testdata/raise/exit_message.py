import sys

print("output before")
sys.exit("the reason, on stderr")
