# Argument errors, the call over several lines.
class Shop:
    def sell(self, item, *, price):
        return item, price


Shop().sell(
    "apple",
    2,
)
