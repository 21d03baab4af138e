// A small highlighter for Python, and good enough for Go and SQL. It makes text nodes only.
const token = new RegExp([
  /(?<comment>#[^\n]*|\/\/[^\n]*)/,
  /(?<string>[rbfuRBFU]{0,2}(?:"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
  /(?<number>\b\d[\w.]*)/,
  /(?<word>[A-Za-z_]\w*)/,
].map((r) => r.source).join('|'), 'g');

const keywords = new Set(('False None True and as assert async await break case class continue def del elif else except ' +
  'finally for from func global go if import in is lambda match nonlocal not or package pass raise range return switch ' +
  'try type var while with yield').split(' '));
const protocol = new Set(('FINAL FINAL_VAR SHOW_VARS llm_query llm_query_batched rlm_query rlm_query_batched ask_llm ' +
  'context contexts print len').split(' '));
const maxHighlighted = 200000; // characters

// highlight appends code to an element.
function highlight(element, code) {
  if (code.length > maxHighlighted) {
    element.append(visible(code));
    return;
  }
  let at = 0;
  for (const m of code.matchAll(token)) {
    const [kind, text] = Object.entries(m.groups).find(([, v]) => v !== undefined);
    const className = kind !== 'word' ? 'h-' + kind : keywords.has(text) ? 'h-keyword' : protocol.has(text) ? 'h-protocol' : '';
    if (!className) continue;
    element.append(visible(code.slice(at, m.index)), make('span', className, visible(text)));
    at = m.index + text.length;
  }
  element.append(visible(code.slice(at)));
}

// splitFences splits a reply into its text and its code.
function splitFences(text) {
  const pieces = [];
  let code = null;
  let lines = [];
  const end = () => { if (lines.join('').trim() || code !== null) pieces.push({code: code !== null, text: lines.join('\n')}); lines = []; };
  for (const line of text.split('\n')) {
    const fence = /^\s{0,3}(`{3,}|~{3,})/.exec(line);
    if (fence && (code === null || fence[1].startsWith(code) && line.trim() === fence[1])) {
      end();
      code = code === null ? fence[1] : null;
    } else lines.push(line);
  }
  end();
  return pieces;
}
