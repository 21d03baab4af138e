# takes the globals from the frame of a coroutine
async def f(): pass
c = f()
print(c.cr_frame.f_globals['__builtins__'] and c.cr_frame.f_builtins['open'](CANARY_FILE).read())
