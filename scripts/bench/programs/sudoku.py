GRID = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"


def solve(cells):
    best = None
    for at, cell in enumerate(cells):
        if cell == 0:
            row, column = divmod(at, 9)
            box = row // 3 * 27 + column // 3 * 3
            used = {cells[row * 9 + k] for k in range(9)} | {cells[k * 9 + column] for k in range(9)}
            used |= {cells[box + k // 3 * 9 + k % 3] for k in range(9)}
            free = [n for n in range(1, 10) if n not in used]
            if best is None or len(free) < len(best[1]):
                best = at, free
    if best is None:
        return True
    at, free = best
    for n in free:
        cells[at] = n
        if solve(cells):
            return True
    cells[at] = 0
    return False


def run():
    for _ in range(4):
        cells = [int(c) if c != "." else 0 for c in GRID]
        assert solve(cells) and sum(cells) == 405
