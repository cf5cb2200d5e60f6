// The board's own script: the clock that runs by itself, and the map as something to point at and walk in.

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

// The map is one tab stop: arrows walk from node to node, Enter or a press opens one; a box within is a pod. What is under
// the pointer or has the focus is told below the map.
const map = () => document.querySelector('[data-look]');
const nodes = () => [...map()?.querySelectorAll('a.nd') ?? []];
const tell = node => {
  const tip = document.querySelector('[data-tip]');
  if (tip) tip.textContent = node.getAttribute('aria-label');
};
const stop = () => nodes().forEach((node, place, all) => {
  node.tabIndex = place === Math.max(0, all.findIndex(one => one.id === at)) ? 0 : -1;
  node.classList.toggle('is-sel', node.id === `node-${document.getElementById('inspector')?.dataset.selected}`);
});
let at = '';
const walk = (node, key) => {
  const all = nodes(), place = all.indexOf(node);
  const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: all.length - 1 }[key];
  if (to !== undefined) return all[to];
  const sign = { ArrowDown: 1, ArrowUp: -1 }[key], from = node.getBoundingClientRect();
  if (!sign) return undefined;
  let best, least = Infinity;
  all.forEach(one => {
    const box = one.getBoundingClientRect(), down = (box.top - from.top) * sign;
    const far = down * 4 + Math.abs(box.left - from.left);
    if (down > 4 && far < least) [best, least] = [one, far];
  });
  return best;
};
const open = (query, by) => {
  opener = by;
  const base = document.querySelector('[data-inspector]').dataset.inspector;
  window.htmx?.ajax('GET', `${base}?${query}`, { target: '#inspector', swap: 'outerHTML' });
};
['pointerover', 'focusin'].forEach(kind => document.addEventListener(kind, event => {
  const node = event.target.closest?.('[data-look] a.nd');
  if (node) tell(node);
}));
document.addEventListener('click', event => {
  const node = event.target.closest?.('[data-look] a.nd');
  if (!node || !window.htmx || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const pod = event.target.closest('g')?.querySelector('title')?.textContent.split(':')[0];
  at = node.id;
  stop();
  open(pod ? `pod=${encodeURIComponent(pod)}` : `node=${encodeURIComponent(node.id.slice(5))}`, event.detail === 0 ? node.id : '');
});
document.addEventListener('keydown', event => {
  const node = event.target.closest?.('[data-look] a.nd');
  if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
  const to = walk(node, event.key);
  if (!to) return;
  event.preventDefault();
  at = to.id;
  stop();
  to.focus();
});
document.addEventListener('htmx:afterSettle', stop);
stop();
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
    link.closest('.qp, tr')?.classList.toggle('is-sel', link.dataset.select === selected);
  });
  if (!box || !event.detail.pathInfo?.requestPath?.includes('/inspector/')) return;
  box.scrollTop = 0;
  if (opener || document.activeElement === document.body) box.focus({ preventScroll: true });
});
