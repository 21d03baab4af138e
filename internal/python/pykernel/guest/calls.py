"""Host calls that go on while the guest does other things.

All that the guest can wait for is time and these calls, and both are one request:
`w`, which returns when a started call has ended or the time is over.
"""

import wire


class _Calls:
    """The calls under way on the host."""

    def __init__(self):
        self.futures = {}  # number of the call -> future of either kind

    def wait(self, timeout):
        ms = -1 if timeout is None else max(0, int(timeout * 1000 + 0.999))
        for number, ok, value in wire.decode_answer(wire.text(f"w{ms}")):
            future = self.futures.pop(number, None)
            if future is None or future.done():
                continue
            if not ok:
                future.set_exception(wire.HostError(value))
                continue
            try:
                future.set_result(wire.settle(value) if future.receive is None else future.receive(value))
            except Exception as error:  # of the snippet's own class
                future.set_exception(error)

    def start(self, future, function, args, kwargs):
        request, receive = function.request(args, kwargs)
        number = self.send(future, request, receive)
        future.add_done_callback(lambda f: self._forget(number, f))
        return future

    def send(self, future, request, receive=None):
        """Starts a call; receive makes the value of its answer, None for the answer."""
        number = int(wire.send("s", request))
        future.receive = receive
        self.futures[number] = future
        return number

    def _forget(self, number, future):
        if future.cancelled():
            self.abandon(number)

    def abandon(self, number):
        """Cancels a call that nothing waits for any more."""
        if self.futures.pop(number, None) is not None:
            wire.text(f"x{number}")

    def drop_all(self):
        """Cancels the tasks that a stopped snippet left behind."""
        futures, self.futures = self.futures, {}
        for number, future in futures.items():
            wire.text(f"x{number}")
            future.cancel()


calls = _Calls()
