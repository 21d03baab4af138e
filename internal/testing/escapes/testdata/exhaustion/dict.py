# grows a dict
# harm: grows
# ends: variously
x = {}
while True: x[len(x)] = 'x' * 100
