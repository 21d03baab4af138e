# An exception in a finally block, and one in an __exit__.
class Guard:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        raise OSError(28, "No space left on device", "out.txt")


def work():
    with Guard():
        try:
            raise ValueError("root cause")
        finally:
            undefined_cleanup()


work()
