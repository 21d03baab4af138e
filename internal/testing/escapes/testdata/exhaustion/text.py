# grows a text
# harm: grows
# ends: variously
x = 'ab'
while True: x += x
