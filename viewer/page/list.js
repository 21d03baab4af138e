// showRuns fills the list of runs.
function showRuns(items, filter) {
  const wanted = filter.toLowerCase();
  const rows = [];
  for (const item of items) {
    if (!(item.id + ' ' + item.title + ' ' + (item.status || '')).toLowerCase().includes(wanted)) continue;
    const row = make('tr');
    const name = make('td');
    const link = make('a', 'runlink', visible(item.id));
    link.href = '#' + new URLSearchParams({run: item.id});
    name.append(link, make('div', 'dim', visible(item.title || '')));
    const state = make('td');
    state.append(make('span', 'status ' + statusClass(item), visible(item.status || '')));
    row.append(name, state, make('td', 'num', formatCount(item.calls)), make('td', 'num', formatUSD(item.usd, item.unpriced)),
      make('td', '', item.changed ? formatAgo(new Date(item.changed)) : ''));
    rows.push(row);
  }
  if (!rows.length) {
    const row = make('tr');
    const cell = make('td', 'dim', items.length ? 'No run fits.' : document.querySelector('meta[name=empty]').content);
    cell.colSpan = 5;
    row.append(cell);
    rows.push(row);
  }
  const chosen = byId('items').contains(document.activeElement) ? document.activeElement.href : null;
  byId('items').replaceChildren(...rows);
  if (chosen) [...document.querySelectorAll('.runlink')].find((a) => a.href === chosen)?.focus({preventScroll: true});
}

// focusInList gives the focus to the link with an address, or to the first one.
function focusInList(address) {
  const links = [...document.querySelectorAll('.runlink')];
  (links.find((link) => link.getAttribute('href') === address) || links[0])?.focus();
}

// moveInList moves the focus from link to link, and from the filter to the first one.
function moveInList(key) {
  const links = [...document.querySelectorAll('.runlink')];
  const at = links.indexOf(document.activeElement);
  const to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1}[key];
  if (to < 0 && at === 0) byId('filter').focus();
  else links[Math.min(Math.max(to, 0), links.length - 1)]?.focus();
}
