from collections import OrderedDict


class Cache(OrderedDict):
    def __init__(self, most):
        super().__init__()
        self.most, self.hits = most, 0

    def fetch(self, key):
        if key in self:
            self.move_to_end(key)
            self.hits += 1
            return self[key]
        self[key] = value = key * 3
        if len(self) > self.most:
            self.popitem(last=False)
        return value


def run():
    cache, key = Cache(500), 1
    for _ in range(60_000):
        key = key * 48271 % 2147483647
        cache.fetch(key % 900)
    assert cache.hits
