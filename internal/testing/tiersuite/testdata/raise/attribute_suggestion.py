# A misspelt attribute gets a suggestion.
class Order:
    def __init__(self):
        self.quantity = 1


print(Order().quantiy)
