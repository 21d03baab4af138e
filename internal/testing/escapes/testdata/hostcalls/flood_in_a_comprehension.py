# calls the host in a comprehension
x = [ask(i) for i in range(30)]
