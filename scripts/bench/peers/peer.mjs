// Runs snippets in Pyodide. A line in is a JSON text: a snippet for the session that
// lives, or one of two orders. A line out is a JSON text: what the snippet printed.
//   {"fresh": SNIPPET}   run it in a new interpreter
//   {"keep": N}          make N interpreters and keep them
//   {"show": FOLDER}     show a folder of the host as /data
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const { loadPyodide } = createRequire(process.cwd() + "/")("pyodide");

async function open() {
  const python = await loadPyodide();
  python.runPython("import sys, io");
  return python;
}

function run(python, code) {
  python.runPython("sys.stdout = io.StringIO()");
  python.runPython(code);
  return python.runPython("sys.stdout.getvalue()");
}

const kept = [];
let session;

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  let answer = "";

  if (order.fresh) {
    answer = run(await open(), order.fresh);
  } else if (order.keep) {
    for (let i = 0; i < order.keep; i++) {
      kept.push(await open());
      run(kept.at(-1), "print(1+1)");
    }
  } else {
    session ??= await open();
    try {
      if (order.show) {
        session.mountNodeFS("/data", order.show);
      } else {
        answer = run(session, order);
      }
    } catch (error) {
      answer = "failed: " + String(error.message).trim().split("\n").at(-1);
    }
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
