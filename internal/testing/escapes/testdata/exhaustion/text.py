# grows a string
# harm: grows
# ends: variously
x = 'ab'
while True: x += x
