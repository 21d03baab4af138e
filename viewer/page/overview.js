// Overview draws how many calls were going on at each time.
class Overview {
  constructor(box, canvas, choose) {
    this.box = box;
    this.canvas = canvas;
    new ResizeObserver(() => this.draw()).observe(box);
    canvas.addEventListener('click', (e) => {
      const at = (e.offsetX / canvas.clientWidth) * this.model.end;
      const node = this.model.nodes.findIndex((n) => isLeaf(n) && n.start <= at && n.start + n.elapsed >= at);
      if (node >= 0) choose(node);
    });
    canvas.addEventListener('keydown', (e) => {
      const by = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -Infinity, End: Infinity}[e.key];
      if (!by) return;
      e.preventDefault();
      this.move(by, choose);
    });
  }

  // move chooses another model call, in the order of their times.
  move(by, choose) {
    const calls = [];
    this.model.nodes.forEach((n, i) => { if (isLeaf(n)) calls.push(i); });
    calls.sort((a, b) => this.model.nodes[a].start - this.model.nodes[b].start || a - b);
    if (!calls.length) return;
    this.at = Math.min(Math.max((this.at ?? -1) + by, 0), calls.length - 1);
    const {canvas} = this;
    canvas.setAttribute('aria-valuemax', calls.length);
    canvas.setAttribute('aria-valuenow', this.at + 1);
    const n = this.model.nodes[calls[this.at]];
    canvas.setAttribute('aria-valuetext', `call ${this.at + 1} of ${calls.length}, after ${formatTime(n.start)}`);
    choose(calls[this.at]);
  }

  show(model) {
    if (this.model !== model) {
      this.at = undefined; // the call that a key chose last
      for (const name of ['max', 'now']) this.canvas.setAttribute('aria-value' + name, 0);
      this.canvas.removeAttribute('aria-valuetext');
    }
    this.model = model;
    this.box.hidden = !(model.end > 0);
    this.draw();
  }

  draw() {
    const {canvas, model} = this;
    if (!model || this.box.hidden || !canvas.clientWidth) return;
    const scale = devicePixelRatio || 1;
    const width = canvas.width = Math.round(canvas.clientWidth * scale);
    const height = canvas.height = Math.round(canvas.clientHeight * scale);
    const {most, counts, failed} = countParallel(model, width);

    const colours = getComputedStyle(canvas);
    const pen = canvas.getContext('2d');
    pen.fillStyle = colours.outlineColor;
    const unit = (height - 14 * scale) / Math.max(most, 1);
    for (let x = 0; x < width; x++) {
      const h = Math.max(counts[x] * unit, counts[x] ? scale : 0);
      pen.fillRect(x, height - h, 1, h);
    }
    pen.fillStyle = colours.columnRuleColor;
    for (let x = 0; x < width; x++) if (failed[x]) pen.fillRect(x - scale, height - 4 * scale, 2 * scale, 4 * scale);
    pen.fillStyle = colours.color;
    pen.font = 11 * scale + 'px ' + colours.fontFamily;
    pen.textBaseline = 'top';
    pen.fillText(countText(most), 6 * scale, 2 * scale);
    canvas.setAttribute('aria-label', `${countText(most)}, in ${formatTime(model.end)}`);
  }
}

const countText = (most) => most ? `at most ${most} model call${most > 1 ? 's' : ''} at the same time` : 'no model calls';

const isLeaf = (n) => (n.kind === 'call' || n.kind === 'reply') && n.start >= 0 && n.elapsed >= 0;

// countParallel counts the calls at each of so many places in time. Most is exact, not only at
// these places.
function countParallel(model, width) {
  const edges = [];
  const steps = new Int32Array(width + 2);
  const failed = new Uint8Array(width + 2);
  for (const n of model.nodes) {
    if (!isLeaf(n)) continue;
    const from = Math.floor((n.start / model.end) * (width - 1));
    const to = Math.ceil(((n.start + n.elapsed) / model.end) * (width - 1));
    steps[from]++;
    steps[to + 1]--;
    if (isFailure(n)) failed[to] = 1;
    edges.push(n.start, 1, n.start + n.elapsed, -1);
  }

  const counts = new Int32Array(width);
  for (let x = 0, sum = 0; x < width; x++) counts[x] = sum += steps[x];
  return {most: countMost(edges), counts, failed};
}

// countMost returns how many calls were going on at most. One that ends when another begins
// was not going on at the same time.
function countMost(edges) {
  const n = edges.length / 2;
  const order = new Uint32Array(n);
  for (let i = 0; i < n; i++) order[i] = i;
  order.sort((a, b) => edges[2 * a] - edges[2 * b] || edges[2 * a + 1] - edges[2 * b + 1]);
  let most = 0, now = 0;
  for (const i of order) { now += edges[2 * i + 1]; most = Math.max(most, now); }
  return most;
}
