def run(n=7):
    count, first, r, best = list(range(1, n + 1)), list(range(n)), n, 0
    while True:
        while r != 1:
            count[r - 1] = r
            r -= 1
        if first[0] != 0 and first[n - 1] != n - 1:
            order, flips = first[:], 0
            while k := order[0]:
                order[: k + 1] = reversed(order[: k + 1])
                flips += 1
            best = max(best, flips)
        while True:
            if r == n:
                assert best == 16
                return
            first.insert(r, first.pop(0))
            count[r] -= 1
            if count[r] > 0:
                break
            r += 1
