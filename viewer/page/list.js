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
    state.append(make('span', 'status s-' + (isFailure(item) ? 'bad' : item.status === 'running' ? 'run' : 'ok'), visible(item.status || '')));
    row.append(name, state, make('td', 'num', formatCount(item.calls)), make('td', 'num', formatUSD(item.usd)),
      make('td', '', item.changed ? formatAgo(new Date(item.changed)) : ''));
    rows.push(row);
  }
  if (!rows.length) {
    const row = make('tr');
    const cell = make('td', 'dim', items.length ? 'No run fits.' : 'There are no runs yet.');
    cell.colSpan = 5;
    row.append(cell);
    rows.push(row);
  }
  const chosen = byId('items').contains(document.activeElement) ? document.activeElement.href : null;
  byId('items').replaceChildren(...rows);
  if (chosen) [...document.querySelectorAll('.runlink')].find((a) => a.href === chosen)?.focus({preventScroll: true});
}
