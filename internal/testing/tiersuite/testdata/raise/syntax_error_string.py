message = "no closing quote
print(message)
