# writes the name open in letters that Python normalises
print(ｏｐｅｎ(CANARY_FILE).read())
