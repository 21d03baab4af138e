# catches the exception that should end it
# harm: hangs
while True:
    try:
        while True: pass
    except BaseException: pass
