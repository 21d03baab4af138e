class Account:
    def __init__(self, owner, rate):
        self.owner, self.rate, self.entries = owner, rate, []

    @property
    def balance(self):
        return sum(self.entries)

    def book(self, amount):
        if amount:
            self.entries.append(self.fee(amount))
        return self

    def fee(self, amount):
        return amount


class Business(Account):
    def fee(self, amount):
        return super().fee(amount) - self.rate


def run():
    bank = [Business(i, 1) if i % 3 else Account(i, 0) for i in range(300)]
    for n in range(40_000):
        bank[n % 300].book(n % 7)
    assert sum(a.balance for a in bank if isinstance(a, Business)) > 0
