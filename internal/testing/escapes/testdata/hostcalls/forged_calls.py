# sends call messages by hand, without the runtime
for _ in range(10):
    import _rlm
    for f in [f for f in vars(_rlm).values() if callable(f)]:
        for form in (str, str.encode):
            for head in ('cask\0[[],{}]', 'sask\0[[],{}]'):
                try: f(form(head))
                except Exception: pass
