# Nothing runs when the source does not parse.
print("never printed")
total = (1 + 2
print(total)
