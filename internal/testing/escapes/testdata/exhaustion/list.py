# grows a list
# harm: grows
# ends: variously
x = [1]
while True: x += x
