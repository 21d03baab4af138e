// Text of a run is shown as text only. make is the one place that creates elements.
function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

// fact makes a name with its value, for a dl.
function fact(name, value) {
  const pair = make('div');
  pair.append(make('dt', '', name), make('dd', '', visible(value)));
  return pair;
}

const byId = (id) => document.getElementById(id);

// hidden are characters that a browser shows as nothing, or that change the order of others.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// visible makes hidden characters visible.
function visible(text) {
  return String(text).replace(hidden, (c) => {
    return '⟨' + c.codePointAt(0).toString(16).toUpperCase().padStart(2, '0') + '⟩';
  });
}

function formatTime(ms) {
  if (!(ms >= 0)) return '';
  if (ms < 1) return ms === 0 ? '0' : '<1 ms';
  if (ms < 1000) return ms.toFixed(ms < 10 ? 1 : 0) + ' ms';
  const s = ms / 1000;
  if (s < 60) return s.toFixed(s < 10 ? 2 : 1) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
  return Math.floor(s / 3600) + ' h ' + Math.floor((s % 3600) / 60) + ' min';
}

// formatAge formats the time of what is not over: it changes every second.
function formatAge(ms) {
  return ms < 60000 ? Math.max(Math.floor(ms / 1000), 0) + ' s' : formatTime(ms);
}

function formatCount(n) {
  if (!n) return '';
  if (n < 10000) return n.toLocaleString('en');
  if (n < 1e6) return (n / 1e3).toFixed(n < 1e5 ? 1 : 0) + ' k';
  return (n / 1e6).toFixed(n < 1e7 ? 2 : 1) + ' M';
}

function formatUSD(usd, unpriced) {
  if (!usd) return unpriced ? 'unknown' : '';
  const text = '$' + (usd < 0.01 ? usd.toFixed(4) : usd < 100 ? usd.toFixed(3) : usd.toFixed(0));
  return unpriced ? text + '+' : text;
}

function formatBytes(n) {
  return n < 2048 ? n + ' characters' : n < 2 ** 20 ? Math.round(n / 1024) + ' Ki characters'
    : (n / 2 ** 20).toFixed(1) + ' Mi characters';
}

function formatAgo(date) {
  const s = (Date.now() - date) / 1000;
  if (s < 90) return Math.max(0, Math.round(s)) + ' s ago';
  if (s < 5400) return Math.round(s / 60) + ' min ago';
  if (s < 129600) return Math.round(s / 3600) + ' h ago';
  return date.toLocaleDateString();
}
