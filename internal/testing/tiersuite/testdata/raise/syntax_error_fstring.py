value = f"{1 +}"
