# connects with asyncio
# local: network seccomp landlock
import asyncio
async def main(): await asyncio.open_connection('127.0.0.1', CANARY_TCP)
asyncio.run(main())
