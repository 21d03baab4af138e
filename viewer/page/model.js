// A snippet with more calls than this shows them as one row that unfolds.
const groupFrom = 12;

const isFailure = (n) => n.status && !['running', 'answered', 'interrupted', 'unknown', 'ok', 'synthesised', 'parked'].includes(n.status);
const statusClass = (n) => 's-' + (isFailure(n) ? 'bad' : n.status === 'running' ? 'run' : 'ok');
const isProblem = (n) => isFailure(n) || ['retry', 'refusal', 'warning', 'waiting'].includes(n.kind);

const maxParts = 200; // rows whose texts one row shows

// Model is a run as a tree, and which rows of it are shown. A row is the number of a node, or
// -1 - N for the group of all calls of node N.
class Model {
  constructor(run) {
    this.title = run.title;
    this.status = run.status;
    this.notes = run.notes || [];
    this.nodes = run.nodes;
    this.began = run.began ? Date.parse(run.began) + (run.ahead || 0) : NaN; // on the browser's clock
    this.folded = new Map(); // by row, only what the reader has decided
    this.only = null; // the nodes that a filter leaves, with those above them
    this.count();
    this.layOut();
  }

  // count computes what depends on all nodes: the children and the sums.
  count() {
    const n = this.nodes.length;
    this.first = new Int32Array(n).fill(-1);
    this.next = new Int32Array(n).fill(-1);
    this.calls = new Int32Array(n); // children that are calls
    this.failed = new Int32Array(n); // of these
    this.problems = new Int32Array(n); // below
    this.usd = new Float64Array(n);
    this.tokens = new Float64Array(n);
    this.modelCalls = new Float64Array(n);
    this.toolCalls = new Float64Array(n);
    this.unpriced = new Float64Array(n);
    this.end = 0;
    this.isTimed = false;
    const last = new Int32Array(n).fill(-1);
    for (let i = 0; i < n; i++) {
      const node = this.nodes[i];
      const p = node.parent;
      if (node.start >= 0) {
        this.isTimed = true;
        this.end = Math.max(this.end, node.start + Math.max(node.elapsed, 0));
      }
      this.usd[i] = node.usd || 0;
      this.tokens[i] = (node.in || 0) + (node.out || 0);
      this.modelCalls[i] = node.calls || 0;
      this.toolCalls[i] = node.tools || 0;
      this.unpriced[i] = node.unpriced || 0;
      if (!(p >= 0 && p < i)) continue;
      if (last[p] < 0) this.first[p] = i; else this.next[last[p]] = i;
      last[p] = i;
      if (node.kind === 'call') {
        this.calls[p]++;
        if (isFailure(node)) this.failed[p]++;
      }
    }
    for (let i = n - 1; i > 0; i--) {
      const p = this.nodes[i].parent;
      if (!(p >= 0 && p < i)) continue;
      this.usd[p] += this.usd[i];
      this.tokens[p] += this.tokens[i];
      this.modelCalls[p] += this.modelCalls[i];
      this.toolCalls[p] += this.toolCalls[i];
      this.unpriced[p] += this.unpriced[i];
      this.problems[p] += this.problems[i] + (isProblem(this.nodes[i]) ? 1 : 0);
    }
    this.tick();
  }

  // tick takes the time of a run that goes on.
  tick() {
    this.age = this.status === 'running' && this.began <= Date.now() ? Date.now() - this.began : -1;
    if (this.isTimed) this.end = Math.max(this.end, this.age);
  }

  // isGoing reports whether the time of a node grows.
  isGoing(node) {
    return node.status === 'running' && !(node.elapsed >= 0) && node.start >= 0 && this.age >= node.start;
  }

  formatElapsed(node) {
    return this.isGoing(node) ? formatAge(this.age - node.start) : formatTime(node.elapsed);
  }

  // partsOf returns the nodes whose texts a row shows: its own, those of a turn's replies and
  // snippets, and those of a loop's last turns.
  partsOf(row) {
    if (row < 0) return [];
    const {kind} = this.nodes[row];
    const below = kind === 'turn' ? this.partsOfTurn(row) : kind === 'loop' ? this.partsOfLoop(row) : [];
    const parts = [row, ...below.slice(1 - maxParts)];
    parts.leftOut = below.length >= maxParts;
    return parts;
  }

  partsOfTurn(row) {
    const parts = [];
    for (let c = this.first[row]; c >= 0; c = this.next[c]) {
      if (['reply', 'snippet', 'answer'].includes(this.nodes[c].kind)) parts.push(c);
    }
    return parts;
  }

  partsOfLoop(row) {
    const parts = this.partsOfTurn(row); // of a run without turns
    for (let c = this.first[row]; c >= 0; c = this.next[c]) {
      if (this.nodes[c].kind !== 'turn') continue;
      parts.push(c);
      for (const part of this.partsOfTurn(c)) if (this.nodes[part].kind !== 'answer') parts.push(part); // the loop has it
    }
    return parts;
  }

  isFolded(row) {
    const decided = this.folded.get(row);
    if (decided !== undefined) return decided;
    if (this.only) return false;
    if (row < 0) return true;
    const kind = this.nodes[row].kind;
    return kind === 'snippet' ? this.calls[row] === 0 && this.nodes.length > 2000 : false;
  }

  isGrouped(node) { return !this.only && this.calls[node] > groupFrom; }

  hasChildren(row) {
    if (row < 0) return true;
    for (let c = this.first[row]; c >= 0; c = this.next[c]) if (!this.only || this.only.has(c)) return true;
    return false;
  }

  // layOut computes the rows, without recursion: a hostile trace may be deep.
  layOut() {
    const rows = [];
    const depths = [];
    const stack = [];
    const push = (row, depth) => { rows.push(row); depths.push(depth); };
    const open = (row, depth, from) => stack.push({row, depth, at: from, grouped: false});
    for (let i = 0; i < this.nodes.length; i++) {
      const p = this.nodes[i].parent;
      if (p >= 0 && p < i || this.only && !this.only.has(i)) continue;
      push(i, 0);
      if (!this.isFolded(i)) open(i, 1, this.first[i]);
      while (stack.length) {
        const top = stack[stack.length - 1];
        const c = top.at;
        if (c < 0) { stack.pop(); continue; }
        top.at = this.next[c];
        if (this.only && !this.only.has(c)) continue;
        const isCall = this.nodes[c].kind === 'call';
        if (top.row < 0 && !isCall) continue;
        if (top.row >= 0 && isCall && this.isGrouped(top.row)) {
          if (top.grouped) continue;
          top.grouped = true;
          push(-1 - top.row, top.depth);
          if (!this.isFolded(-1 - top.row)) open(-1 - top.row, top.depth + 1, this.first[top.row]);
          continue;
        }
        push(c, top.depth);
        if (!this.isFolded(c)) open(c, top.depth + 1, this.first[c]);
      }
    }
    this.rows = rows;
    this.depths = depths;
    this.places = null;
  }

  // placeOf returns the index of a row, -1 if it is not shown.
  placeOf(row) {
    if (!this.places) {
      this.places = new Map();
      this.rows.forEach((r, i) => this.places.set(r, i));
    }
    const place = this.places.get(row);
    return place === undefined ? -1 : place;
  }

  // parentOf returns the row above, undefined for none.
  parentOf(row) {
    if (row < 0) return -1 - row;
    const p = this.nodes[row].parent;
    if (!(p >= 0 && p < row)) return undefined;
    return this.nodes[row].kind === 'call' && this.isGrouped(p) ? -1 - p : p;
  }

  fold(row, folded) { this.folded.set(row, folded); this.layOut(); }

  // reveal unfolds all above a row.
  reveal(row) {
    let changed = false;
    for (let p = this.parentOf(row); p !== undefined; p = this.parentOf(p)) {
      if (this.isFolded(p)) { this.folded.set(p, false); changed = true; }
    }
    if (changed) this.layOut();
  }

  foldAll(folded) {
    this.folded.clear();
    for (let i = 0; i < this.nodes.length; i++) {
      if (this.first[i] < 0) continue;
      this.folded.set(i, folded && i > 0);
      if (this.calls[i] > groupFrom) this.folded.set(-1 - i, folded);
    }
    this.layOut();
  }

  // filter shows only some nodes, and what is above them. Null shows all.
  filter(nodes) {
    this.only = nodes && new Set();
    for (const start of nodes || []) {
      for (let i = start; i >= 0 && i < this.nodes.length && !this.only.has(i); i = this.nodes[i].parent) this.only.add(i);
    }
    this.layOut();
  }

  // change takes what is new in a run that goes on. It returns the nodes that changed.
  change(c) {
    this.title = c.title;
    this.status = c.status;
    this.notes = c.notes || [];
    this.nodes.length = Math.min(this.nodes.length, c.count); // a turn that counts has other nodes
    const changed = Object.keys(c.nodes || {}).map(Number).sort((a, b) => a - b);
    for (const i of changed) if (i <= this.nodes.length) this.nodes[i] = c.nodes[i];
    this.count();
    this.layOut();
    return changed;
  }
}
