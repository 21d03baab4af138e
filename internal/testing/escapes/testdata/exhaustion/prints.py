# prints forever
# harm: floods
while True: print('flood ' * 100)
