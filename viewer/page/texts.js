// Of a longer text, the beginning is shown until the reader asks for all.
const shownFirst = 50000; // characters

const textPlurals = {turn: 'Turn', reply: 'Reply', snippet: 'Snippet', call: 'Call', tool: 'Tool call', loop: 'Loop', answer: 'Answer', step: 'Step'};

// showPart shows a row of a model in the pane of texts. texts is null while they are loaded.
function showPart(pane, model, row, texts) {
  pane.replaceChildren();
  if (row < 0) {
    pane.append(make('h2', '', 'Calls'), make('p', 'dim', 'Unfold the row to see each call.'));
    return;
  }

  const n = model.nodes[row];
  const head = make('div', 'head');
  head.append(make('h2', '', Object.hasOwn(textPlurals, n.kind) ? textPlurals[n.kind] : visible(n.kind)));
  if (n.status) head.append(make('span', 'status s-' + (isFailure(n) ? 'bad' : n.status === 'running' ? 'run' : 'ok'), visible(n.status)));
  pane.append(head);
  if (n.kind === 'turn' || n.kind === 'loop') pane.append(make('p', 'lead', visible(n.title || '')));
  pane.append(showFacts(model, n, row));
  if (!texts) {
    pane.append(make('p', 'dim', 'Loading …'));
    return;
  }
  for (const text of texts) pane.append(showText(text));
  if (!texts.length && !model.hasChildren(row)) pane.append(make('p', 'dim', 'This part has no text.'));
}

function showFacts(model, n, row) {
  const facts = make('dl', 'facts');
  const add = (name, value) => { if (value) facts.append(fact(name, value)); };
  add('model', n.model);
  add('agent', n.agent);
  add('purpose', n.reason);
  add('tier', n.tier);
  add('began after', n.start > 0 ? formatTime(n.start) : '');
  add('took', formatTime(n.elapsed));
  add('tokens in', formatCount(n.in));
  add('tokens out', formatCount(n.out));
  add('cost', formatUSD(n.usd, n.unpriced));
  if (model.first[row] >= 0) {
    add('calls below', formatCount(model.modelCalls[row]));
    add('tool calls below', formatCount(model.toolCalls[row]));
    add('tokens below', formatCount(model.tokens[row]));
    add('cost below', formatUSD(model.usd[row], model.unpriced[row]));
    add('problems below', formatCount(model.problems[row]));
  }
  return facts;
}

// showText shows one text with its name.
function showText(text) {
  const section = make('section', 'text f-' + (['code', 'reply'].includes(text.form) ? text.form : 'text'));
  const bar = make('div', 'textbar');
  bar.append(make('h3', '', visible(text.name)), make('span', 'dim', formatBytes(text.text.length)));
  const copy = make('button', 'quiet', 'Copy');
  copy.type = 'button';
  copy.setAttribute('aria-label', 'Copy ' + visible(text.name));
  copy.addEventListener('click', async () => {
    try { await navigator.clipboard.writeText(text.text); copy.textContent = 'Copied'; } catch { copy.textContent = 'Not allowed'; }
    setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
  });
  bar.append(copy);
  const body = make('div', 'body');
  section.append(bar, body);
  fillText(body, text, shownFirst);
  return section;
}

function fillText(body, text, limit) {
  const shown = text.text.slice(0, limit);
  body.replaceChildren();
  const pieces = text.form === 'reply' ? splitFences(shown) : [{code: text.form === 'code', text: shown}];
  for (const piece of pieces) {
    const pre = make('pre', piece.code ? 'code' : '');
    pre.tabIndex = 0;
    pre.setAttribute('aria-label', visible(text.name));
    if (piece.code) highlight(pre, piece.text); else pre.textContent = visible(piece.text);
    body.append(pre);
  }
  if (text.text.length > limit) {
    const more = make('button', '', 'Show all, ' + formatBytes(text.text.length));
    more.type = 'button';
    more.addEventListener('click', () => fillText(body, text, Infinity));
    body.append(more);
  }
}
