# An exception whose __str__ raises.
class Broken(Exception):
    def __str__(self):
        raise ValueError("no text for you")


raise Broken("x")
