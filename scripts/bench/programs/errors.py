def risky(n):
    try:
        if n % 3 == 0:
            raise ValueError(n)
        return {k: v for k, v in zip("abc", (n, n + 1, n + 2))}
    except ValueError as e:
        return {"e": e.args[0]}
    finally:
        n -= 1


def run():
    for i in range(50_000):
        risky(i)
