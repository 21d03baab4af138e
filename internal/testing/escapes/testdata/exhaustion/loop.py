# never ends
# harm: hangs
while True: pass
