def predict(rows):
    return [row * 2 for row in rows]


tally = {"a": 1}
history = ["first"]
answer = "so far"
llm_query = None
parallel_map = map
import datetime, time
# --- the next snippet ---
print(predict([1, 2]), tally, history, answer, llm_query, list(parallel_map(str, [1])))
tally["b"] = len(predict([3]))
print(type(datetime).__name__, type(time).__name__)
# --- the next snippet ---
print(predict([4]), tally, history, answer, llm_query)
