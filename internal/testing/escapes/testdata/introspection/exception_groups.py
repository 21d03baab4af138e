# takes the builtins from the frame of an except* clause
try: raise ExceptionGroup('g', [ValueError()])
except* ValueError as e: print(e.__traceback__.tb_frame.f_builtins['open'](CANARY_FILE).read())
