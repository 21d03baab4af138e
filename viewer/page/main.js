const backend = openBackend();
const part = new Part(byId('part'), choose);
const rows = new Rows(byId('scroll'), byId('space'), choose, toggle);
const overview = new Overview(byId('overview'), byId('parallel'), choose);
let model = null;
let id = null; // of the run
let stop = () => {}; // following the run
let hits = [];
let isFirst = true;
let lastOpened = ''; // the address of the run in the list
let ticking; // the timer of a run that goes on
let listing; // the timer of the list
let renewing = 0; // changes since what is shown is renewed
let loaded = 0; // counts what was asked for, so that a late reply is no longer shown

function note(texts) {
  byId('notes').replaceChildren(...texts.slice(0, 20).map((text) => make('p', '', visible(text))));
}

function fail(error) {
  if (error instanceof KeyNeeded) askForKey(error.message);
  else note([error.message || String(error)]);
}

// askForKey shows a field for the key that the server wants, and then goes on.
function askForKey(why) {
  leave();
  const form = make('form'); // the policy lets no form be sent; the program reads this one
  const field = make('input');
  Object.assign(field, {type: 'password', id: 'key', autocomplete: 'off', required: true,
    pattern: '\\s*rlm_[A-Za-z0-9]+\\s*', title: 'a key begins with rlm_'});
  const label = make('label', '', 'Key ');
  label.append(field);
  form.append(make('p', '', 'This server needs a key, such as rlm_… of "rlm keys create", with the scope read. ' +
    'It stays in this tab alone.'), label, make('button', '', 'Show runs'));
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    backend.useKey(field.value.trim());
    byId('entry').hidden = true;
    navigate();
  });
  byId('entry').replaceChildren(form);
  byId('entry').hidden = false;
  field.focus();
  note(why ? [why] : []);
}

// leave ends all that is shown.
function leave() {
  stop();
  clearInterval(ticking);
  model = id = null;
  for (const part of ['run', 'runs', 'all', 'leave']) byId(part).hidden = true;
  byId('title').textContent = document.title = 'rlm runs';
  byId('status').textContent = '';
  byId('sums').replaceChildren();
}

// place is what the address says: the run and its node.
function place() {
  const query = new URLSearchParams(location.hash.slice(1));
  const node = query.has('node') ? Math.trunc(Number(query.get('node'))) || 0 : null;
  return {run: query.get('run'), node};
}

async function navigate() {
  const {run, node} = place();
  if (backend.runs && run === null) return openList();
  if (model && run === id) {
    if (rows.chosen !== (node ?? 0)) choose(node ?? 0);
    return;
  }
  stop();
  id = run;
  lastOpened = '#' + new URLSearchParams({run});
  try {
    const data = await backend.run(run);
    if (run === id) openRun(data, node);
  } catch (error) {
    fail(error);
  }
}

async function openList() {
  leave();
  try {
    const items = await backend.runs();
    if (!byId('entry').hidden) return; // the key was forgotten meanwhile
    byId('runs').hidden = false;
    byId('leave').hidden = !backend.hasKey();
    if (items.length === 1 && isFirst) {
      location.replace('#' + new URLSearchParams({run: items[0].id}));
      return;
    }
    isFirst = false;
    showList(items);
    note([]);
    focusInList(lastOpened);
  } catch (error) {
    fail(error);
  }
}

// showList shows runs, and asks for them again while one goes on.
function showList(items) {
  showRuns(items, byId('filter').value);
  byId('filter').oninput = (e) => showRuns(items, e.target.value);
  if (!items.some((item) => item.status === 'running')) return;
  clearTimeout(listing);
  listing = setTimeout(async () => {
    const isShown = () => !byId('runs').hidden;
    try {
      const now = isShown() && await backend.runs();
      if (isShown()) showList(now);
    } catch (error) {
      if (isShown()) fail(error);
    }
  }, 2000);
}

// openRun shows a run. Of a run that goes on, it shows what is new, unless the address names a node.
function openRun(data, node) {
  model = new Model(data);
  byId('run').hidden = false;
  byId('runs').hidden = true;
  byId('all').hidden = !backend.runs;
  byId('leave').hidden = !(backend.hasKey && backend.hasKey());
  rows.hits = new Set();
  showRun();
  part.row = null;
  choose(Math.min(Math.max(node ?? 0, 0), Math.max(model.nodes.length - 1, 0)), node === null && data.status === 'running');
  byId('scroll').focus({preventScroll: true});
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('shown')));
  if (['running', 'parked', 'interrupted'].includes(data.status)) follow(data.version);
  clearInterval(ticking);
  if (backend.runs) ticking = setInterval(tick, 1000);
}

// tick shows the times of what goes on.
function tick() {
  if (!model || model.status !== 'running') return;
  model.tick();
  showSums();
  rows.draw(true);
  part.renew(model);
}

function follow(version) {
  stop = backend.follow(id, version, (change) => {
    const isLast = rows.chosen === model.rows.at(-1) && part.isAtEnd();
    const isTreeAtEnd = rows.isAtEnd();
    const changed = model.change(change);
    const last = model.nodes.length - 1;
    if (Math.max(rows.chosen, -1 - rows.chosen) > last) choose(last);
    else if (isLast && rows.chosen !== model.rows.at(-1)) choose(model.rows.at(-1), true);
    showRun();
    if (isTreeAtEnd) rows.goToEnd();
    const shown = new Set(model.partsOf(rows.chosen));
    if (changed.some((node) => shown.has(node))) renewChosen();
  }, () => note([...model.notes, 'The connection is lost: load the page again to see what is new.']));
}

// showRun shows what concerns the whole run.
function showRun() {
  byId('title').textContent = visible(model.title || id || 'A run');
  document.title = visible(model.title || 'A run') + ' – rlm';
  const status = byId('status');
  status.textContent = visible(model.status);
  status.className = 'status ' + statusClass(model);
  showSums();
  byId('tree').classList.toggle('timeless', !(model.end > 0));
  if (rows.bars === 'time' && !(model.end > 0)) setBars('tokens');
  note(model.notes);
  overview.show(model);
  rows.show(model);
}

function showSums() {
  const sums = byId('sums');
  sums.replaceChildren();
  const add = (name, value) => { if (value) sums.append(fact(name, value)); };
  if (model.nodes.length) {
    add('time', model.age >= 0 ? formatAge(model.age) : model.end > 0 ? formatTime(model.end) : '');
    add('calls', formatCount(model.modelCalls[0]));
    add('tool calls', formatCount(model.toolCalls[0]));
    add('tokens', formatCount(model.tokens[0]));
    add('cost', formatUSD(model.usd[0], model.unpriced[0]));
    add('problems', formatCount(model.problems[0]));
  }
}

// choose shows a row, or its end: what is new in it then appears there.
function choose(row, atEnd) {
  if (!model || row === undefined || row >= model.nodes.length) return;
  model.reveal(row);
  rows.choose(row);
  if (row >= 0) {
    const query = backend.runs ? {run: id, node: row} : {node: row};
    history.replaceState(null, '', '#' + new URLSearchParams(query));
  }
  showChosen(atEnd === true);
}

async function showChosen(atEnd) {
  const row = rows.chosen;
  const asked = ++loaded;
  // Meanwhile the page may have gone on to another row, or back to the list.
  const late = setTimeout(() => { if (model && asked === loaded) part.show(model, row, null); }, 120);
  await loadPart(row, asked);
  clearTimeout(late);
  if (atEnd && asked === loaded) part.goToEnd();
}

async function loadPart(row, asked) {
  try {
    const nodes = model.partsOf(row).filter((node) => node === row || model.nodes[node].texts);
    const texts = nodes.some((node) => model.nodes[node].texts) ? await backend.texts(id, nodes) : [];
    if (model && asked === loaded) part.show(model, row, texts);
  } catch (error) {
    if (asked === loaded) fail(error);
  }
}

// renewChosen shows what is new in the chosen row. Changes that arrive meanwhile wait.
async function renewChosen() {
  const isAlready = renewing > 0;
  renewing++;
  if (isAlready) return;
  for (let known = 0; known < renewing;) {
    known = renewing;
    if (model) await loadPart(rows.chosen, loaded);
  }
  renewing = 0;
}

function toggle(row) {
  if (!model.hasChildren(row)) return;
  model.fold(row, !model.isFolded(row));
  rows.show(model);
}

function move(by) {
  const at = model.placeOf(rows.chosen);
  const to = Math.min(Math.max((at < 0 ? 0 : at) + by, 0), model.rows.length - 1);
  choose(model.rows[to]);
}

// unfold unfolds a row, or goes to its first child.
function unfold() {
  if (!model.hasChildren(rows.chosen)) return;
  if (model.isFolded(rows.chosen)) toggle(rows.chosen); else move(1);
}

function foldOrUp() {
  if (model.hasChildren(rows.chosen) && !model.isFolded(rows.chosen)) toggle(rows.chosen);
  else choose(model.parentOf(rows.chosen));
}

// search finds nodes and goes to the first one.
async function search(text) {
  hits = [];
  byId('hits').textContent = '';
  if (text) {
    try {
      const found = await backend.search(id, text);
      if (byId('search').value.trim() !== text) return;
      hits = found.nodes;
      byId('hits').textContent = hits.length ? `${hits.length}${found.more ? '+' : ''} found` : 'nothing found';
    } catch (error) {
      fail(error);
    }
  }
  rows.hits = new Set(hits);
  if (hits.length) nextHit(1, true); else rows.draw(true);
}

function nextHit(by, stay) {
  if (!hits.length) return;
  const now = Math.max(rows.chosen, 0);
  let to;
  if (by > 0) to = hits.find((h) => stay ? h >= now : h > now) ?? hits[0];
  else to = hits.findLast((h) => h < now) ?? hits[hits.length - 1];
  byId('hits').textContent = `${hits.indexOf(to) + 1} of ${hits.length}`;
  choose(to);
}

function showProblems() {
  const problems = [];
  if (byId('errors').checked) model.nodes.forEach((n, i) => { if (isProblem(n)) problems.push(i); });
  model.filter(byId('errors').checked ? problems : null);
  rows.show(model);
  if (model.rows.length) choose(model.placeOf(rows.chosen) >= 0 ? rows.chosen : model.rows[0]);
}

function setBars(what) {
  rows.bars = byId('bars').value = what;
  byId('bartitle').textContent = {time: 'Time', usd: 'Cost', tokens: 'Tokens'}[what];
  rows.draw(true);
}

const themes = ['light dark', 'light', 'dark'];
function setTheme(theme) {
  document.documentElement.style.colorScheme = theme;
  overview.draw();
  try { localStorage.setItem('rlm-theme', theme); } catch { /* a file may have no storage */ }
}

function nextTheme() {
  const now = document.documentElement.style.colorScheme || themes[0];
  setTheme(themes[(themes.indexOf(now) + 1) % themes.length]);
}

const keys = {
  j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
  l: unfold, ArrowRight: unfold, h: foldOrUp, ArrowLeft: foldOrUp, ' ': () => toggle(rows.chosen),
  Home: () => move(-Infinity), End: () => choose(model.rows.at(-1), model.status === 'running'),
  PageDown: () => move(rows.page()), PageUp: () => move(-rows.page()),
  Enter: () => part.pane.focus(), n: () => nextHit(1), N: () => nextHit(-1),
};
const everywhere = {
  '/': () => byId('search').focus(), e: () => byId('errors').click(), w: () => part.pane.classList.toggle('nowrap'),
  b: () => setBars({time: 'usd', usd: 'tokens', tokens: 'time'}[rows.bars]),
  a: () => { if (backend.runs) byId('all').click(); },
};
const always = {'?': () => byId('keys').showModal(), t: nextTheme};
const inList = {'/': () => byId('filter').focus()};
for (const key of ['ArrowDown', 'ArrowUp', 'Home', 'End']) inList[key] = () => moveInList(key);
for (const [key, as] of [['j', 'ArrowDown'], ['k', 'ArrowUp']]) inList[key] = () => moveInList(as);

document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || byId('keys').open || !byId('entry').hidden) return;
  const field = e.target.closest('input:not([type=checkbox]), select');
  if (e.key === 'Escape') return escape(field);
  const isShown = model || !byId('runs').hidden;
  const act = isShown && find(e, field);
  if (!act) return;
  e.preventDefault();
  act();
});

// find returns what a key does, or nothing for what the browser does with it.
function find(e, field) {
  const has = (map) => Object.hasOwn(map, e.key) && map[e.key];
  if (field) return !model && field.id === 'filter' && e.key === 'ArrowDown' && inList.ArrowDown;
  if (!model) return has(always) || has(inList);
  const inTree = e.target === byId('scroll') || e.target === document.body || 'jknN'.includes(e.key);
  return has(always) || has(everywhere) || inTree && has(keys);
}

// escape leaves a field, and leads back to the list or to the tree.
function escape(field) {
  if (field && field.value && field.type === 'search') {
    field.value = '';
    if (model) search(''); else field.dispatchEvent(new Event('input'));
  }
  if (model) byId('scroll').focus(); else focusInList(lastOpened);
}

// The divider between the panes.
function setWidth(share) {
  const bounded = Math.min(Math.max(share, 0.2), 0.8);
  byId('panes').style.setProperty('--tree', bounded * 100 + '%');
  byId('divider').setAttribute('aria-valuenow', Math.round(bounded * 100));
}
byId('divider').addEventListener('pointerdown', (e) => e.target.setPointerCapture(e.pointerId));
byId('divider').addEventListener('pointermove', (e) => {
  if (!e.target.hasPointerCapture(e.pointerId)) return;
  const box = byId('panes').getBoundingClientRect();
  setWidth((e.clientX - box.left) / box.width);
});
byId('divider').addEventListener('keydown', (e) => {
  const now = Number(e.target.getAttribute('aria-valuenow')) / 100;
  const to = {ArrowLeft: now - 0.05, ArrowRight: now + 0.05, Home: 0, End: 1}[e.key];
  if (to === undefined) return;
  e.preventDefault();
  setWidth(to);
});

let typing;
byId('search').addEventListener('input', (e) => {
  clearTimeout(typing);
  typing = setTimeout(() => search(e.target.value.trim()), 200);
});
byId('search').addEventListener('keydown', (e) => { if (e.key === 'Enter') nextHit(e.shiftKey ? -1 : 1); });
byId('errors').addEventListener('change', showProblems);
byId('bars').addEventListener('change', (e) => setBars(e.target.value));
byId('unfold').addEventListener('click', () => { model.foldAll(false); rows.show(model); });
byId('fold').addEventListener('click', () => { model.foldAll(true); choose(0); rows.show(model); });
byId('theme').addEventListener('click', nextTheme);
byId('help').addEventListener('click', () => byId('keys').showModal());
byId('all').addEventListener('click', () => { isFirst = false; });
byId('leave').addEventListener('click', () => { backend.forgetKey(); askForKey(''); });
addEventListener('hashchange', navigate);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => overview.draw());

try { const theme = localStorage.getItem('rlm-theme'); if (themes.includes(theme)) setTheme(theme); } catch { /* as above */ }
navigate();
