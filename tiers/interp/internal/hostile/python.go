package hostile

import "strings"

var pythonSnippets = []Snippet{
	{
		Name: "python: endless loop", May: []string{Limited}, Harm: Hangs,
		Source: `while True:
    pass`,
	},
	{
		Name: "python: tower of powers", May: []string{Rejected}, Harm: Hangs,
		Source: `x = 10**10**8`,
	},
	{
		Name: "python: growing integer", May: []string{Limited, Rejected}, Harm: Hangs,
		Source: `x = 3
while True:
    x = x * x`,
	},
	{
		Name: "python: growing string", May: []string{Limited, Rejected, Crashed}, Harm: Grows,
		Source: `s = 'x'
while True:
    s += s`,
	},
	{
		Name: "python: growing list", May: []string{Limited, Rejected, Crashed}, Harm: Grows,
		Source: `s = [1]
while True:
    s += s`,
	},
	{
		Name: "python: string times", May: []string{Limited, Rejected, Crashed}, Harm: Grows,
		Source: `s = 'x' * 10000000000000`,
	},
	{
		Name: "python: range", May: []string{Limited, Rejected}, Harm: Grows,
		Source: `x = list(range(1000000000000))`,
	},
	{
		Name: "python: print flood", May: []string{Rejected}, Harm: Floods,
		Source: `while True:
    print('flood flood flood')`,
	},
	{
		Name: "python: chain of attributes", May: []string{Rejected}, Harm: Secret,
		Source: `f = getattr(__import__("o" + "s"), "sys" + "tem")
f("cat secret")`,
	},
	{
		Name: "python: class chain of a string", May: []string{Rejected}, Harm: "code instance",
		Source: `def f():
    pass
g = getattr(f, "__code__")
print(g)`,
	},
	{
		Name: "python: open", May: []string{Rejected}, Harm: Secret,
		Source: `print(open("secret").read())`,
	},
	{
		Name: "python: __import__", May: []string{Rejected}, Harm: Secret,
		Source: `__import__("os").system("cat secret")`,
	},
	{
		Name: "python: import", May: []string{Rejected}, Harm: Secret,
		Source: `import os
print(os.getenv("RLM_SECRET"))`,
	},
	{
		Name: "python: eval", May: []string{Rejected}, Harm: Secret,
		Source: `print(eval("open('secret').read()"))`,
	},
	{
		Name: "python: exec", May: []string{Rejected}, Harm: Secret,
		Source: `exec("print(open('secret').read())")`,
	},
	{
		Name: "python: builtins", May: []string{Rejected}, Harm: Secret,
		Source: `import builtins
print(builtins.open("secret").read())`,
	},
	{
		Name: "python: lambda recursion", May: []string{Rejected}, Harm: Grows,
		Source: `f = lambda: f()
f()`,
	},
	{
		Name: "python: deep brackets", May: []string{Rejected}, Harm: Grows,
		Source: strings.Repeat("[", 5000000) + strings.Repeat("]", 5000000),
	},
	{
		Name: "python: deep operators", May: []string{Rejected}, Harm: Grows,
		Source: "x = " + strings.Repeat("-", 5000000) + "1",
	},
	{
		Name: "python: long sum", May: []string{Rejected}, Harm: Grows,
		Source: "x = 1" + strings.Repeat("+1", 3000000),
	},
	{
		Name: "python: list in itself", May: []string{Rejected}, Harm: Grows,
		Source: `x = []
x.append(x)
print(x)`,
	},
	{
		Name: "python: list grows under a loop", May: []string{Rejected}, Truth: "9\n",
		Source: `x = [1]
for i in x:
    if len(x) < 9:
        x.append(i)
print(len(x))`,
	},
	{Name: "python: homoglyph", Source: "\uff50rint(1)", May: []string{Rejected}, Truth: "1\n"},
	{
		Name: "python: another list", May: []string{Rejected}, Truth: "[1, 2, 1, 2]\n",
		Source: `x = [1, 2]
y = x
x *= 2
print(y)`,
	},
	{
		Name: "python: os._exit", May: []string{Rejected}, Harm: Kills,
		Source: `import os
os._exit(3)`,
	},
	{
		Name: "python: listdir", May: []string{Rejected}, Harm: "gopath",
		Source: `import os
print(os.listdir("."))`,
	},
	{
		Name: "python: writing", May: []string{Rejected}, Harm: "True",
		Source: `f = open("new", "w")
f.write("x")
f.close()
import os
print("new" in os.listdir("."))`,
	},
	{
		Name: "python: time.sleep", May: []string{Rejected}, Harm: Hangs,
		Source: `import time
time.sleep(3600)`,
	},
	{
		Name: "python: glob", May: []string{Rejected}, Harm: "/etc",
		Source: `import glob
print(glob.glob("/et*"))`,
	},
}
