# calls the host many times at the same time
import asyncio
async def main():
    async def one(): return ask()
    await asyncio.gather(*[one() for _ in range(30)], return_exceptions=True)
await main()
