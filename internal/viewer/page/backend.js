// A backend has the runs: those of the server that sent the page, or the one in this file.
function openBackend() {
  const data = byId('run-data');
  return data ? embedded(JSON.parse(data.textContent)) : remote();
}

function remote() {
  const get = async (name, query) => {
    const reply = await fetch('api/' + name + '?' + new URLSearchParams(query || {}));
    if (!reply.ok) throw new Error((await reply.text()).trim() || 'the server failed');
    return reply.json();
  };

  return {
    runs: () => get('runs'),
    run: (id) => get('run', {id}),
    texts: (id, node) => get('texts', {id, node}),
    search: (id, text) => get('search', {id, text}),
    // follow calls changed for each change, until the returned function is called.
    follow(id, version, changed, lost) {
      const events = new EventSource('api/changes?' + new URLSearchParams({id, version}));
      events.addEventListener('change', (e) => changed(JSON.parse(e.data)));
      events.addEventListener('ended', (e) => { events.close(); changed(JSON.parse(e.data)); });
      events.onerror = () => { events.close(); lost(); };
      return () => events.close();
    },
  };
}

function embedded(run) {
  return {
    runs: null,
    run: async () => run,
    texts: async (id, node) => run.texts[node] || [],
    async search(id, text) {
      const lower = text.toLowerCase();
      const has = (s) => s && s.toLowerCase().includes(lower);
      const nodes = [];
      run.nodes.forEach((n, i) => {
        if (has(n.title) || has(n.status) || has(n.model) || has(n.agent) || has(n.tier) || has(n.kind) || has(n.reason) ||
            (run.texts[i] || []).some((t) => has(t.text))) nodes.push(i);
      });
      return {nodes, more: false};
    },
    follow: () => () => {},
  };
}
