# asks for a function that the host does not offer
import _rlm
for f in [f for f in vars(_rlm).values() if callable(f)]:
    for form in (str, str.encode):
        for head in ('csecret_function\0[[],{}]', 'ssecret_function\0[[],{}]'):
            try: f(form(head))
            except Exception: pass
