// A backend has the runs: those of the server that sent the page, or the one in this file.
function openBackend() {
  const data = byId('run-data');
  return data ? embedded(JSON.parse(data.textContent)) : remote();
}

// KeyNeeded is the error of a server that wants a key first, or another one.
class KeyNeeded extends Error {}

const keyPlace = 'rlm-key'; // in the storage of this tab, which other servers of the machine do not see

function remote() {
  const ask = async (name, query, signal) => {
    const key = sessionStorage.getItem(keyPlace);
    const reply = await fetch('api/' + name + '?' + new URLSearchParams(query || {}),
      {headers: key ? {Authorization: 'Bearer ' + key} : {}, credentials: 'omit', signal});
    if (reply.ok) return reply;
    const text = (await reply.text()).trim();
    const isProblem = (reply.headers.get('Content-Type') || '').includes('problem+json'); // RFC 9457
    const why = (isProblem ? JSON.parse(text).detail : text) || 'the server failed';
    throw reply.status === 401 ? new KeyNeeded(key ? why : '') : new Error(why);
  };
  const get = async (name, query) => (await ask(name, query)).json();

  return {
    runs: () => get('runs'),
    // run also says how far the browser's clock is ahead of the server's, in milliseconds.
    run: async (id) => {
      const reply = await ask('run', {id});
      const sent = Date.parse(reply.headers.get('Date'));
      const ahead = Date.now() - sent;
      return {...await reply.json(), ahead: Math.abs(ahead) > 5000 ? ahead : 0};
    },
    texts: (id, nodes) => get('texts', [['id', id], ...nodes.map((node) => ['node', node])]),
    search: (id, text) => get('search', {id, text}),
    hasKey: () => sessionStorage.getItem(keyPlace) !== null,
    useKey: (key) => sessionStorage.setItem(keyPlace, key),
    forgetKey: () => sessionStorage.removeItem(keyPlace),
    // follow calls changed for each change, until the returned function is called.
    follow(id, version, changed, lost) {
      const end = new AbortController();
      ask('changes', {id, version}, end.signal)
        .then((reply) => readEvents(reply.body, changed))
        .catch(() => { if (!end.signal.aborted) lost(); });
      return () => end.abort();
    },
  };
}

// readEvents calls take with the data of each server-sent event, until the one named ended. An
// EventSource would do the same, but sends no key.
async function readEvents(body, take) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let pieces = [];;) {
    const {value, done} = await reader.read();
    if (done) throw new Error('the connection is lost');
    pieces.push(value);
    if (!value.includes('\n\n') && !value.startsWith('\n')) continue;
    const events = pieces.join('').split('\n\n');
    pieces = [events.pop()];
    for (const event of events) {
      take(JSON.parse(event.slice(event.indexOf('\ndata: ') + 7)));
      if (event.startsWith('event: ended\n')) return;
    }
  }
}

function embedded(run) {
  return {
    runs: null,
    run: async () => run,
    texts: async (id, nodes) => nodes.flatMap((node) => (run.texts[node] || []).map((text) => ({...text, node}))),
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
