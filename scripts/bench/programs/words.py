import random

r = random.Random(1)
known = ["".join(r.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(r.randint(2, 9))) for _ in range(5000)]
text = " ".join(r.choice(known) for _ in range(120_000))


def run():
    counts = {}
    for word in text.split():
        word = word.upper()
        counts[word] = counts.get(word, 0) + 1
    sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:10]
