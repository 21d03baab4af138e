# Slicing: reading, assignment, deletion, extended steps, slice objects.
s = list(range(10))
print(s[2:5], s[:3], s[7:], s[-3:], s[:-7], s[::3], s[::-1], s[8:2:-2], s[-1:-4:-1], s[5:2], s[100:], s[:100], s[-100:2], s[:])
s[2:5] = ["a", "b"]
print(s)
s[1:1] = [90, 91]
s[-1:] = []
s[::4] = "WXY"
print(s, len(s))
del s[::3]
del s[-2:]
print(s)
s[:] = range(6)
s[2:4] *= 2
print(s, s[1:][0], s[slice(1, 4)], s[slice(None, None, 2)])
try:
    s[::2] = [1]
except ValueError as e:
    print(e)
for bad in (lambda: s[::0], lambda: s["a"], lambda: s[1.0], lambda: s[100], lambda: (1, 2)[5], lambda: "abc"[1:"x"], lambda: s.__setitem__(99, 1), lambda: s.__delitem__(99)):
    try:
        bad()
    except (ValueError, TypeError, IndexError) as e:
        print(type(e).__name__, e)
print(slice(1, 10, 2).indices(5), slice(None, -1).indices(4), slice(-1, None, -1).indices(4), slice(1, 2) == slice(1, 2), repr(slice(3)))
t, st, r, b = (1, 2, 3, 4), "héllo", range(10), b"abcd"
print(t[1:3], t[::-1], st[1:3], st[::-1], st[-2:], r[2:8:3], r[::-1], b[1:3], bytearray(b)[::2], memoryview(b)[1:3].tobytes())


class Probe:
    def __getitem__(self, k):
        return k


p = Probe()
print(p[1], p[1:2], p[1:2, 3], p[...], p[:, ::2], p[()], p["k":None], p[*[1, 2], 3])
m = [[r * 3 + c for c in range(3)] for r in range(3)]
print([row[1] for row in m], [row[::-1] for row in m[::-1]], list(map(list, zip(*m))), [m[i][i] for i in range(3)])
a = [1, 2, 3]
a2 = a[:]
a2.append(4)
print(a, a2, a is a[:], [0] * 3, [[]] * 2, a + a2, a * 2)
for n in (0, 1, 5):
    for i in (None, -7, -1, 0, 2, 7):
        for j in (None, -7, -1, 0, 2, 7):
            for k in (None, 1, 2, -1, -3):
                q = list(range(n))
                assert q[i:j:k] == [q[x] for x in range(*slice(i, j, k).indices(n))] == list(range(n)[i:j:k]) == list(bytes(q)[i:j:k])
print("all slices agree", a.index(3), a.index(3, -1), [1, 2, 1].count(1))
lst = [5, 3, 8]
lst.insert(-1, "i")
lst.insert(100, "end")
lst.extend("ab")
print(lst, lst.pop(0), lst.pop(), lst.remove("i"), lst, lst.copy(), lst.reverse(), lst, lst.clear(), lst)
