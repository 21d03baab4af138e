# A misspelt name gets a suggestion.
customer_count = 3


def report():
    local_total = 5
    return local_totl + customer_count


report()
