# The caret counts characters, not bytes.
größe = "日本語"; ¿qué = 1
