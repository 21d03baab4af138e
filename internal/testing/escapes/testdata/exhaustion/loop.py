# loops forever
# harm: hangs
while True: pass
