# The classic: a method that returned None.
words = "b a".split()
print(words.sort().index("a"))
