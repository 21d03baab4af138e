// Rows shows the rows of a model that are in view. It moves a few elements about, so that the
// number of nodes does not matter.
const rowHeight = 28;
const maxHeight = 16000000; // pixels; browsers cannot scroll much more

const icons = {
  loop: '◎', turn: '▸', reply: '✎', snippet: '❯', call: '⇢', answer: '✔', retry: '↻', refusal: '⊘', warning: '!',
  waiting: '…', verdict: '⚖', compaction: '⇲', foresight: '≈', step: '•', tool: '⚒', decision: '⚖', note: 'i',
};

class Rows {
  constructor(scroll, space, choose, toggle) {
    this.scroll = scroll;
    this.space = space;
    this.pool = [];
    this.model = null;
    this.chosen = 0; // a row
    this.bars = 'time';
    this.hits = new Set();
    this.waiting = false;
    scroll.addEventListener('scroll', () => this.draw(), {passive: true});
    new ResizeObserver(() => this.draw()).observe(scroll);
    space.addEventListener('click', (e) => {
      const element = e.target.closest('.row');
      if (!element) return;
      if (e.target.closest('.twist') && !element.querySelector('.twist').hidden) toggle(element.row);
      else choose(element.row);
    });
    space.addEventListener('dblclick', (e) => {
      const element = e.target.closest('.row');
      if (element) toggle(element.row);
    });
  }

  show(model) { this.model = model; this.draw(true); }

  // draw draws at the next frame. All elements are filled anew if the rows have changed.
  draw(anew) {
    this.anew = this.anew || anew === true;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.drawNow(); });
  }

  drawNow() {
    if (!this.model) return;
    const total = this.model.rows.length;
    const height = Math.min(total * rowHeight, maxHeight);
    if (this.height !== height) {
      this.height = height;
      this.space.style.height = height + 'px';
    }

    const top = this.scroll.scrollTop;
    const view = this.scroll.clientHeight;
    const room = Math.max(height - view, 1);
    // Beyond maxHeight a pixel stands for several rows.
    const first = total * rowHeight > maxHeight
      ? Math.floor((top / room) * Math.max(total - view / rowHeight, 0)) : Math.floor(top / rowHeight);
    const shift = total * rowHeight > maxHeight ? top - first * rowHeight : 0;
    const from = Math.max(0, first - 6);
    const to = Math.min(total, first + Math.ceil(view / rowHeight) + 6);

    const size = Math.max(this.pool.length, to - from);
    while (this.pool.length < size) {
      const element = this.makeRow();
      this.pool.push(element);
      this.space.append(element);
      this.anew = true;
    }
    const used = new Set();
    for (let i = from; i < to; i++) {
      const element = this.pool[i % size];
      used.add(element);
      if (this.anew || element.place !== i) this.fill(element, i);
      const y = i * rowHeight + shift;
      if (element.y !== y) { element.y = y; element.style.transform = `translateY(${y}px)`; }
    }
    for (const element of this.pool) {
      const unused = !used.has(element);
      if (element.hidden !== unused) element.hidden = unused;
      if (unused) element.place = -1;
    }
    this.anew = false;
  }

  makeRow() {
    const row = make('div', 'row');
    row.setAttribute('role', 'treeitem');
    row.parts = {};
    const cell = make('div', 'c-part');
    for (const name of ['twist', 'icon', 'kind', 'title', 'model', 'tier']) cell.append(row.parts[name] = make('span', name));
    for (const name of ['twist', 'icon']) row.parts[name].setAttribute('aria-hidden', true);
    const bar = make('div', 'c-bar');
    bar.append(row.parts.bar = make('div', 'bar'));
    row.append(cell, bar);
    for (const name of ['time', 'tokens', 'usd']) row.append(row.parts[name] = make('span', 'c-' + name));
    return row;
  }

  fill(element, place) {
    const m = this.model;
    const row = m.rows[place];
    const d = this.describe(row);
    const parts = element.parts;
    element.place = place;
    element.row = row;
    element.id = 'row' + row;
    const chosen = row === this.chosen;
    element.className = 'row k-' + d.className + (chosen ? ' chosen' : '') + (d.problem ? ' problem' : '') +
      (d.running ? ' running' : '') + (this.hits.has(row) ? ' hit' : '');
    element.setAttribute('aria-level', m.depths[place] + 1);
    element.setAttribute('aria-selected', chosen);
    element.setAttribute('aria-posinset', place + 1);
    element.setAttribute('aria-setsize', m.rows.length);
    parts.twist.hidden = !d.unfolds;
    if (d.unfolds) element.setAttribute('aria-expanded', !d.folded); else element.removeAttribute('aria-expanded');
    parts.twist.textContent = d.folded ? '▸' : '▾';
    element.firstChild.style.paddingInlineStart = 6 + Math.min(m.depths[place], 24) * 16 + 'px';
    parts.icon.textContent = d.icon;
    parts.kind.textContent = d.kind + ' ';
    parts.title.textContent = d.title;
    parts.model.textContent = d.model;
    parts.tier.textContent = d.tier;
    parts.time.textContent = d.time;
    parts.tokens.textContent = d.tokens;
    parts.usd.textContent = d.usd;
    this.drawBar(parts.bar, d);
  }

  // describe returns what a row shows.
  describe(row) {
    const m = this.model;
    if (row < 0) return this.describeGroup(-1 - row);
    const n = m.nodes[row];
    const unfolds = m.hasChildren(row);
    const kind = Object.hasOwn(icons, n.kind) ? n.kind : 'other';
    const failed = isProblem(n);
    const tokens = m.tokens[row];
    const title = visible(n.title || (n.status === 'running' ? 'running' : n.kind));
    const status = n.status && n.status !== 'running' && n.kind !== 'loop' ? visible(n.status) : '';
    return {
      className: kind, icon: isFailure(n) && kind !== 'loop' ? '✘' : icons[kind] || '·', title, unfolds, folded: m.isFolded(row),
      problem: failed, running: n.status === 'running',
      model: visible(n.model && n.kind !== 'turn' && n.kind !== 'loop' ? n.model.replace(/^.*\//, '') : ''),
      tier: visible([n.tier, status, n.kind === 'loop' && row > 0 ? n.status : ''].filter(Boolean).join(' · ')),
      time: m.formatElapsed(n), tokens: formatCount(tokens), usd: formatUSD(m.usd[row], m.unpriced[row]),
      start: n.start, elapsed: n.elapsed, share: this.share(row),
      kind: visible(n.kind) + (n.status === 'running' ? ', running:' : failed ? ', a problem:' : ':'),
    };
  }

  describeGroup(parent) {
    const m = this.model;
    let start = -1, end = -1, usd = 0, tokens = 0, unpriced = 0, running = 0, model;
    for (let c = m.first[parent]; c >= 0; c = m.next[c]) {
      const n = m.nodes[c];
      if (n.kind !== 'call') continue;
      if (n.start >= 0 && (start < 0 || n.start < start)) start = n.start;
      if (n.start >= 0) end = Math.max(end, n.start + Math.max(n.elapsed, 0));
      usd += m.usd[c];
      tokens += m.tokens[c];
      unpriced += m.unpriced[c];
      if (n.status === 'running') running++;
      model = model === undefined || model === n.model ? n.model : '';
    }
    const failed = m.failed[parent];
    const ok = m.calls[parent] - failed - running;
    const title = `${m.calls[parent].toLocaleString('en')} calls: ${ok} ok` + (failed ? `, ${failed} failed` : '') +
      (running ? `, ${running} running` : '');
    const isGoing = running > 0 && start >= 0 && m.age >= start;
    const elapsed = isGoing ? m.age - start : start >= 0 ? end - start : -1;
    return {
      className: 'calls', icon: '⇶', title, unfolds: true, folded: m.isFolded(-1 - parent), problem: failed > 0,
      running: running > 0, model: visible((model || '').replace(/^.*\//, '')), tier: '', time: isGoing ? formatAge(elapsed) : formatTime(elapsed),
      tokens: formatCount(tokens), usd: formatUSD(usd, unpriced), start, elapsed,
      share: this.bars === 'usd' ? usd / m.usd[0] : tokens / m.tokens[0], kind: 'calls:',
    };
  }

  share(row) {
    const of = this.bars === 'usd' ? this.model.usd : this.model.tokens;
    return of[0] ? of[row] / of[0] : 0;
  }

  drawBar(bar, d) {
    const end = this.model.end || 1;
    let left = 0, width = 0;
    if (this.bars !== 'time') width = d.share || 0;
    else if (d.start >= 0) {
      left = d.start / end;
      width = (d.elapsed >= 0 ? d.elapsed : end - d.start) / end;
    }
    bar.hidden = !(width > 0 || this.bars === 'time' && d.start >= 0);
    if (bar.hidden) return;
    bar.style.left = Math.min(left, 1) * 100 + '%';
    bar.style.width = Math.min(width, 1 - Math.min(left, 1)) * 100 + '%';
  }

  // choose marks a row and brings it into view.
  choose(row) {
    this.chosen = row;
    const place = this.model.placeOf(row);
    if (place >= 0) this.bringIntoView(place);
    this.drawNow();
    this.anew = true;
    this.drawNow();
    this.scroll.setAttribute('aria-activedescendant', 'row' + row);
  }

  bringIntoView(place) {
    const total = this.model.rows.length;
    const view = this.scroll.clientHeight;
    if (total * rowHeight > maxHeight) {
      this.scroll.scrollTop = (place / total) * maxHeight;
      return;
    }
    const y = place * rowHeight;
    if (y < this.scroll.scrollTop) this.scroll.scrollTop = y;
    else if (y + rowHeight > this.scroll.scrollTop + view) this.scroll.scrollTop = y + rowHeight - view;
  }

  isAtEnd() {
    const {scrollTop, clientHeight, scrollHeight} = this.scroll;
    return scrollTop > 0 && scrollTop + clientHeight >= scrollHeight - 4;
  }

  goToEnd() {
    this.drawNow();
    this.scroll.scrollTop = this.scroll.scrollHeight;
  }

  page() { return Math.max(1, Math.floor(this.scroll.clientHeight / rowHeight) - 1); }
}
