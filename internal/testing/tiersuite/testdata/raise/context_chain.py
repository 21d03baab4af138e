# An exception while another is handled, three deep.
def a():
    try:
        b()
    except ZeroDivisionError:
        [].pop()


def b():
    return 1 % 0


try:
    a()
except IndexError:
    {}["missing"]
