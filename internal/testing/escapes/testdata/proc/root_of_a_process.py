# reads a file through the root of another process
print(open(f'/proc/{CANARY_VICTIM}/root' + CANARY_FILE).read())
