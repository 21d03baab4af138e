# Neither an int nor None: printed, and the code is 1.
raise SystemExit(["a", 1])
