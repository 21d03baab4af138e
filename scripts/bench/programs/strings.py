def run():
    text, parts = "", []
    for i in range(40_000):
        text += chr(97 + i % 26)
        parts.append(f"{i}:{text[-3:]}-{i * 2:x}")
        if i % 9 == 0:
            parts[-1] = parts[-1].replace("a", "<a>").strip(":").partition("-")[2]
    whole = ",".join(parts)
    assert len(whole.split(",")) == 40_000 and whole.startswith("")
