# calls the host through functions from the globals of a host function
import builtins
g = ask.__globals__ if hasattr(ask, '__globals__') else {}
for n in list(g):
    if callable(g[n]) and 'call' in n.lower():
        for _ in range(10):
            try: g[n]('secret_function', (), {})
            except BaseException: pass
for _ in range(30): ask()
