words = [f"{a}{b}{c}" for a in ("re", "un", "in", "pre") for b in ("do", "load", "form", "act", "port") for c in ("", "s", "ed", "ing", "able")]


def run():
    for _ in range(30):
        root = {}
        for word in words:
            node = root
            for letter in word:
                node = node.setdefault(letter, {})
            node["$"] = word
        found, todo = [], [(root, "")]
        while todo:
            node, prefix = todo.pop()
            for letter, child in node.items():
                if letter == "$":
                    found.append(child)
                else:
                    todo.append((child, prefix + letter))
        assert sorted(found) == sorted(words)
