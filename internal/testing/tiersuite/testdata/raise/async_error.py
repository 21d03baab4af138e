# An exception in a coroutine that is driven by hand: no frame of the library in between.
async def leaf():
    raise LookupError("in the leaf")


async def branch():
    await leaf()


branch().send(None)
