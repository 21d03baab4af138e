from decimal import Decimal, localcontext


def run():
    with localcontext(prec=60):
        for _ in range(150):
            last, t, s, n, na, d, da = 0, Decimal(3), 3, 1, 0, 0, 24
            while s != last:
                last = s
                n, na = n + na, na + 8
                d, da = d + da, da + 32
                t = (t * n) / d
                s += t
