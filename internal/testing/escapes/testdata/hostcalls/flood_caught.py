# calls on when it is refused
for _ in range(30):
    try: ask()
    except BaseException: pass
