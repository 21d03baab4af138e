# heapq, bisect, graphlib, queue.
import bisect
import heapq
import queue
from graphlib import CycleError, TopologicalSorter

h = [5, 2, 8, 1]
heapq.heapify(h)
heapq.heappush(h, 0)
print(h, heapq.heappop(h), heapq.heappushpop(h, 3), heapq.heapreplace(h, 9), h, heapq.nlargest(2, h), heapq.nsmallest(2, [(3, "c"), (1, "z")], key=lambda t: t[1]))
print(list(heapq.merge([1, 4], [2, 3], [0])), list(heapq.merge("ca", "b", reverse=True)), list(heapq.merge(["a", "BB"], ["c"], key=len)))
data = [(i * 37) % 101 for i in range(100)]
heap = []
for v in data:
    heapq.heappush(heap, (v, str(v)))
assert [heapq.heappop(heap)[0] for _ in data] == sorted(data)
try:
    heapq.heappop([])
except IndexError as e:
    print(e)
xs = [1, 3, 3, 5]
print(bisect.bisect(xs, 3), bisect.bisect_left(xs, 3), bisect.bisect_right(xs, 9), bisect.bisect_left(xs, 0), bisect.bisect(xs, 3, hi=2), bisect.bisect([(1, "a"), (5, "b")], 4, key=lambda t: t[0]))
bisect.insort(xs, 4)
bisect.insort_left(xs, 3)
print(xs, "FDCBA"[bisect.bisect([60, 70, 80, 90], 77)])
g = {"d": {"b", "c"}, "b": {"a"}, "c": {"a"}}
ts = TopologicalSorter(g)
ts.prepare()
order = []
while ts.is_active():
    ready = sorted(ts.get_ready())
    order.append(ready)
    ts.done(*ready)
print(order)
try:
    list(TopologicalSorter({"a": {"b"}, "b": {"a"}}).static_order())
except CycleError as e:
    print(e.args[0], sorted(set(e.args[1])))


def dijkstra(graph, start):
    dist, todo = {}, [(0, start)]
    while todo:
        d, n = heapq.heappop(todo)
        if n not in dist:
            dist[n] = d
            for m, w in graph[n].items():
                heapq.heappush(todo, (d + w, m))
    return dist


print(dijkstra({"a": {"b": 1, "c": 5}, "b": {"c": 2, "d": 7}, "c": {"d": 1}, "d": {}}, "a"))
q = queue.Queue(2)
q.put("x")
q.put_nowait("y")
try:
    q.put_nowait("z")
except queue.Full:
    print("full", q.get(), q.qsize(), q.get_nowait(), q.empty())
pq, lq = queue.PriorityQueue(), queue.LifoQueue()
for v in (3, 1, 2):
    pq.put(v)
    lq.put(v)
print([pq.get() for _ in range(3)], [lq.get() for _ in range(3)])
