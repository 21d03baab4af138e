// Of a longer text, the beginning is shown until the reader asks for all.
const shownFirst = 50000; // characters

const textPlurals = {turn: 'Turn', reply: 'Reply', snippet: 'Snippet', call: 'Call', tool: 'Tool call', loop: 'Loop', answer: 'Answer', step: 'Step'};

// Part shows a row of a model in the pane of texts. What stays the same keeps its elements, so
// that a reader of a run that goes on keeps the place, the selection and the focus.
class Part {
  constructor(pane, choose) {
    this.pane = pane;
    this.choose = choose;
    this.row = null;
    this.elements = new Map(); // by key
  }

  isAtEnd() {
    const {pane} = this;
    return pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 8;
  }

  goToEnd() { this.pane.scrollTop = this.pane.scrollHeight; }

  // show shows a row. texts is null while they are loaded.
  show(model, row, texts) {
    const isNew = this.row !== row;
    const follows = !isNew && this.isAtEnd() && model.status === 'running';
    if (isNew) {
      this.elements.clear();
      this.grows = model.status === 'running';
    }
    this.row = row;
    this.texts = texts;
    const kept = this.elements;
    this.elements = new Map();
    this.list = [];
    this.add = (key, make, source) => {
      while (this.elements.has(key)) key += "'";
      let element = kept.get(key);
      if (!element || element.source !== source) element = make();
      element.source = source;
      this.elements.set(key, element);
      this.list.push(element);
    };
    this.fill(model, row, texts);

    const wanted = new Set(this.list);
    for (const element of [...this.pane.children]) if (!wanted.has(element)) element.remove();
    this.list.forEach((element, i) => { // an element that is moved would lose the focus
      if (this.pane.children[i] !== element) this.pane.insertBefore(element, this.pane.children[i] || null);
    });
    if (isNew) this.pane.scrollTop = 0;
    if (follows) this.goToEnd();
  }

  // renew shows the times of what goes on anew.
  renew(model) {
    if (this.row !== null && this.row < model.nodes.length) this.show(model, this.row, this.texts);
  }

  fill(model, row, texts) {
    if (row < 0) {
      this.add('group', () => make('h2', '', 'Calls'));
      this.add('hint', () => make('p', 'dim', 'Unfold the row to see each call.'));
      return;
    }
    const n = model.nodes[row];
    this.add('head ' + n.kind + n.status, () => makeHead(n));
    if (n.kind === 'turn' || n.kind === 'loop') this.add('lead ' + n.title, () => make('p', 'lead', visible(n.title || '')));
    const facts = listFacts(model, n, row);
    this.add('facts ' + JSON.stringify(facts), () => {
      const list = make('dl', 'facts');
      list.append(...facts.map(([name, value]) => fact(name, value)));
      return list;
    });
    if (!texts) {
      this.add('loading', () => make('p', 'dim', 'Loading …'));
      return;
    }
    this.fillTexts(model, row, texts);
    if (!texts.length && !model.hasChildren(row)) this.add('none', () => make('p', 'dim', 'This part has no text.'));
  }

  // fillTexts shows the texts of a row, and then those of the rows below that belong to it.
  fillTexts(model, row, texts) {
    const byNode = Map.groupBy(texts, (text) => text.node);
    const shown = model.partsOf(row);
    const codes = new Set(texts.filter((text) => text.form === 'code').map((text) => text.text.trim()));
    if (shown.leftOut) this.add('left out', () => make('p', 'dim', 'Earlier parts are in the tree.'));
    // What is new appears at the end, also the answer of a loop.
    const own = byNode.get(row) || [];
    const isLate = (text) => this.grows && shown.length > 1 && text.name !== 'question';
    this.addTexts(row, own.filter((text) => !isLate(text)), null);
    for (const node of shown.slice(1)) {
      const n = model.nodes[node];
      if (n.kind === 'turn') this.add(`turn ${node} ${n.title}`, () => this.makeTurn(n, node));
      this.addTexts(node, byNode.get(node) || [], codes);
      if (n.kind === 'snippet' && n.status === 'running') {
        this.add(`running ${node}`, () => make('p', 'dim', 'The snippet is running …'));
      }
    }
    this.addTexts(row, own.filter(isLate), null);
  }

  // addTexts shows the texts of a node. codes are given for a node below the row: see splitText.
  addTexts(node, texts, codes) {
    for (const text of texts) {
      const pieces = splitText(text, codes);
      if (!pieces.length) continue;
      this.add(`text ${node} ${text.name} ${pieces.length}`, () => this.makeText(text, pieces, codes !== null), text.text);
    }
  }

  makeTurn(n, node) {
    const head = make('h3', 'turnhead');
    head.append(this.makeLink(node, visible(n.title || 'Turn')));
    return head;
  }

  makeLink(node, text) {
    const link = make('button', 'quiet', text);
    link.type = 'button';
    link.addEventListener('click', () => this.choose(node));
    return link;
  }

  // makeText makes one text with its name. isBelow says that it belongs to a row below.
  makeText(text, pieces, isBelow) {
    const section = make('section', 'text f-' + (['code', 'reply'].includes(text.form) ? text.form : 'text'));
    const bar = make('div', 'textbar');
    bar.append(make('h3', '', visible(text.name)), make('span', 'dim', (text.cut ? 'more than ' : '') + formatBytes(text.text.length)));
    if (isBelow) {
      const open = this.makeLink(text.node, 'Open');
      open.setAttribute('aria-label', 'Open the part of ' + visible(text.name));
      bar.append(open);
    }
    bar.append(makeCopy(text));
    const body = make('div', 'body');
    section.append(bar, body);
    fillText(body, text, pieces, shownFirst);
    return section;
  }
}

function makeHead(n) {
  const head = make('div', 'head');
  head.append(make('h2', '', Object.hasOwn(textPlurals, n.kind) ? textPlurals[n.kind] : visible(n.kind)));
  if (n.status) head.append(make('span', 'status ' + statusClass(n), visible(n.status)));
  return head;
}

// listFacts returns names with their values.
function listFacts(model, n, row) {
  const facts = [];
  const add = (name, value) => { if (value) facts.push([name, value]); };
  add('model', n.model);
  add('agent', n.agent);
  add('purpose', n.reason);
  add('tier', n.tier);
  add('began after', n.start > 0 ? formatTime(n.start) : '');
  add(model.isGoing(n) ? 'time so far' : 'took', model.formatElapsed(n));
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

function makeCopy(text) {
  const copy = make('button', 'quiet', 'Copy');
  copy.type = 'button';
  copy.setAttribute('aria-label', 'Copy ' + visible(text.name));
  copy.addEventListener('click', async () => {
    try { await navigator.clipboard.writeText(text.text); copy.textContent = 'Copied'; } catch { copy.textContent = 'Not allowed'; }
    setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
  });
  return copy;
}

// splitText splits a text into pieces of prose and code. Code that is one of the given codes is
// left out, because it has a text of its own.
function splitText(text, codes) {
  const pieces = text.form === 'reply' ? splitFences(text.text) : [{code: text.form === 'code', text: text.text}];
  return codes && text.form === 'reply' ? pieces.filter((piece) => !piece.code || !codes.has(piece.text.trim())) : pieces;
}

function fillText(body, text, pieces, limit) {
  body.replaceChildren();
  let room = limit;
  for (const piece of pieces) {
    if (room <= 0) break;
    const shown = piece.text.slice(0, room);
    room -= piece.text.length;
    const pre = make('pre', piece.code ? 'code' : '');
    pre.tabIndex = 0;
    pre.setAttribute('role', 'group');
    pre.setAttribute('aria-label', visible(text.name));
    if (piece.code) highlight(pre, shown); else pre.textContent = visible(shown);
    body.append(pre);
  }
  if (room < 0) {
    const more = make('button', '', 'Show all, ' + formatBytes(text.text.length));
    more.type = 'button';
    more.addEventListener('click', () => fillText(body, text, pieces, Infinity));
    body.append(more);
  }
}
