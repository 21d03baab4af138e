# computes a tower of powers
# harm: hangs
# ends: variously
x = 7 ** 7 ** 10
print(len(str(x)))
