# goes by another process's root
print(open(f'/proc/{CANARY_VICTIM}/root' + CANARY_FILE).read())
