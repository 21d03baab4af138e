# catches the exception that should end the snippet
# harm: hangs
while True:
    try:
        while True: pass
    except BaseException: pass
