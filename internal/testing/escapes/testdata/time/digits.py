# writes a number of ten million digits again and again
# harm: hangs
import sys
sys.set_int_max_str_digits(0)
x = 1 << 33_000_000
while True: str(x)
