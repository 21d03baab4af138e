# calls the host too often
for _ in range(30): ask()
