# continues to call the host after a refusal
for _ in range(30):
    try: ask()
    except BaseException: pass
