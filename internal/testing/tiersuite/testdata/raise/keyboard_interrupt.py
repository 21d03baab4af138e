# Raised by hand it is an exception like any other.
raise KeyboardInterrupt("by hand")
