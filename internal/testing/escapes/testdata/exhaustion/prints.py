# prints without end
# harm: floods
while True: print('flood ' * 100)
