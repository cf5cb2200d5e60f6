// The board's own script: the clock that runs by itself, and the heat map as something to point at and walk in.

// A clock that runs carries its milliseconds and rate; the moment it appeared is the anchor.
const seen = new WeakMap();
const two = n => String(n).padStart(2, '0');
const words = ms => {
  const tenths = Math.floor(ms / 100), h = Math.floor(tenths / 36000), m = Math.floor(tenths / 600) % 60, s = Math.floor(tenths / 10) % 60;
  return `${h ? `${h}:` : ''}${two(m)}:${two(s)}.${tenths % 10}`;
};
const step = matchMedia('(prefers-reduced-motion: reduce)').matches ? 1000 : 200;
setInterval(() => {
  document.querySelectorAll('[data-clock]').forEach(el => {
    if (!seen.has(el)) seen.set(el, performance.now());
    el.textContent = words(Number(el.dataset.clock) + (performance.now() - seen.get(el)) * Number(el.dataset.rate || 1));
  });
}, step);

// The link that a key opened in the inspector; empty after a click.
let opener = '';

// One SVG for thousands of nodes: a point or an arrow key becomes an index, the index a name, the name a request.
const NS = 'http://www.w3.org/2000/svg', CELL = 10;
const namesOf = svg => {
  if (!seen.has(svg)) {
    const { content, dataset } = svg.parentElement.querySelector('[data-names]');
    let before = '';
    seen.set(svg, content.textContent.split(' ').map(coded => {
      before = before.slice(0, parseInt(coded[0], 36)) + coded.slice(1);
      return before + dataset.names;
    }));
  }
  return seen.get(svg);
};
const mark = (svg, index) => {
  const columns = Number(svg.dataset.columns);
  let cursor = svg.querySelector('.cursor');
  if (!cursor) { cursor = svg.appendChild(document.createElementNS(NS, 'rect')); cursor.setAttribute('class', 'cursor'); }
  Object.entries({ x: (index % columns) * CELL - 1, y: Math.floor(index / columns) * CELL - 1, width: CELL, height: CELL, rx: 1.5 })
    .forEach(([key, value]) => cursor.setAttribute(key, value));
  svg.dataset.at = index;
  const name = namesOf(svg)[index];
  document.querySelectorAll(`[data-heat-of="${svg.id}"]`).forEach(out => { out.textContent = name; });
  return name;
};
const open = (svg, index) => {
  const name = mark(svg, index);
  opener = '';
  window.htmx?.ajax('GET', `${svg.dataset.href}?node=${encodeURIComponent(name)}`, { target: '#inspector', swap: 'outerHTML' });
};
const within = (svg, index) => index >= 0 && index < namesOf(svg).length;
const indexAt = (svg, event) => {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const column = Math.floor(point.x / CELL), row = Math.floor(point.y / CELL), columns = Number(svg.dataset.columns);
  if (column < 0 || column >= columns || row < 0) return -1;
  return row * columns + column;
};
document.addEventListener('click', event => {
  const svg = event.target.closest?.('svg.heat[data-columns]');
  if (!svg) return;
  const index = indexAt(svg, event);
  if (within(svg, index)) open(svg, index);
});
document.addEventListener('pointermove', event => {
  const svg = event.target.closest?.('svg.heat[data-columns]');
  if (!svg) return;
  const index = indexAt(svg, event);
  if (within(svg, index) && Number(svg.dataset.at) !== index) mark(svg, index);
});
document.addEventListener('keydown', event => {
  const svg = event.target.closest?.('[data-heat]')?.querySelector('svg.heat');
  if (!svg || event.ctrlKey || event.metaKey || event.altKey) return;
  const columns = Number(svg.dataset.columns), last = namesOf(svg).length - 1, at = Number(svg.dataset.at ?? -1);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at < 0 ? 0 : at + columns, ArrowUp: at - columns, Home: 0, End: last }[event.key];
  if (event.key === 'Enter' && at >= 0) { event.preventDefault(); open(svg, at); return; }
  if (to === undefined) return;
  event.preventDefault();
  if (!within(svg, to)) return;
  const name = mark(svg, to), said = document.getElementById('status');
  if (said) said.textContent = name;
});
// A piece of a node's bar is a pod to be opened; the list of the node in the inspector is the way to it by keyboard.
document.addEventListener('click', event => {
  const title = event.target.closest?.('article.node svg.bar g')?.querySelector('title');
  const base = document.querySelector('[data-inspector]')?.dataset.inspector;
  if (!title || !base) return;
  opener = '';
  window.htmx?.ajax('GET', `${base}?pod=${encodeURIComponent(title.textContent.split(':')[0])}`, { target: '#inspector', swap: 'outerHTML' });
});
// What was picked last counts, from the moment it is asked for: an answer on its way, of a tick or of a pick before, tells
// of something else and is let go; the next tick brings the rest of it again.
const picked = () => document.getElementById('pulse-selected');
const askedFor = path => {
  const query = new URL(path, location.href).searchParams;
  return path.includes('/inspector/') ? query.get('pod') ?? query.get('node') : null;
};
document.addEventListener('htmx:beforeRequest', event => {
  const pick = askedFor(event.detail.pathInfo.requestPath);
  if (pick !== null && picked()) picked().value = pick;
});
document.addEventListener('htmx:beforeSwap', event => {
  const pick = askedFor(event.detail.pathInfo.requestPath);
  if (pick !== null && picked() && pick !== picked().value) event.detail.shouldSwap = false;
});
document.addEventListener('htmx:oobBeforeSwap', event => {
  const { target, fragment } = event.detail, now = picked()?.value ?? '';
  const told = target.id === 'inspector' ? fragment.querySelector('#inspector')?.dataset.selected ?? ''
    : target.id === 'pulse-state' ? fragment.querySelector('#pulse-selected').value : now;
  if (told !== now) event.detail.shouldSwap = false;
});
// What the inspector shows is marked at once, not with the next tick. What was opened with a key takes the focus; Escape
// gives it back.
document.addEventListener('click', event => {
  const link = event.target.closest?.('[data-select]');
  if (link && !link.closest('#inspector')) opener = event.detail === 0 ? link.id : '';
});
document.addEventListener('keydown', event => {
  if (event.key !== 'Escape' || !opener || !event.target.closest?.('#inspector')) return;
  document.getElementById(opener)?.focus();
});
document.addEventListener('htmx:afterSettle', event => {
  const box = document.getElementById('inspector'), selected = box?.dataset.selected;
  document.querySelectorAll('[data-select]').forEach(link => {
    link.closest('article.node, .qp, tr')?.classList.toggle('is-sel', link.dataset.select === selected);
  });
  if (!box || !event.detail.pathInfo?.requestPath?.includes('/inspector/')) return;
  box.scrollTop = 0;
  if (opener || document.activeElement === document.body) box.focus({ preventScroll: true });
});
// A tick brings a new map: the cursor stays where it was.
document.addEventListener('htmx:oobBeforeSwap', () => {
  const at = {};
  document.querySelectorAll('svg.heat[data-at]').forEach(svg => { at[svg.id] = svg.dataset.at; });
  requestAnimationFrame(() => Object.entries(at).forEach(([id, index]) => {
    const svg = document.getElementById(id);
    if (svg && svg.dataset.at === undefined && within(svg, Number(index))) mark(svg, Number(index));
  }));
});
