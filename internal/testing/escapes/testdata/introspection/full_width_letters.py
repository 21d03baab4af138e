# writes open in letters that Python normalises
print(ｏｐｅｎ(CANARY_FILE).read())
