# computes 7 ** 7 ** 10 and prints its length
# harm: hangs
# ends: variously
x = 7 ** 7 ** 10
print(len(str(x)))
