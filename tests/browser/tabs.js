// Marks what a keyboard must reach, and keeps what has the focus at each key, before the key moves it.
around => {
  const stops = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
  const groups = new Set(), main = document.querySelector('main'), news = [];
  let n = 0;
  document.querySelectorAll('details').forEach(d => { d.open = true; });
  document.querySelectorAll(stops).forEach(el => {
    if (el.disabled || el.tabIndex < 0 || !el.getClientRects().length) return;
    if (getComputedStyle(el).visibility !== 'visible' || el.matches('[popover] *')) return;
    if (el.type === 'radio') { if (groups.has(el.name)) return; groups.add(el.name); }
    if (!main.contains(el)) {
      const what = `${el.tagName} ${el.id} ${[...el.classList].join('.')} ${el.name || ''}`;
      if (around.includes(what)) return;
      news.push(what);
    }
    el.dataset.stop = n++;
  });
  if (!news.length) { main.tabIndex = -1; main.focus(); }
  const outlined = item => item && getComputedStyle(item).outlineStyle !== 'none'
    && parseFloat(getComputedStyle(item).outlineWidth) >= 1;
  const points = [[.5, .5], [.02, .1], [.98, .9], [.02, .9], [.98, .1], [.5, .1], [.5, .9], [.25, .5], [.75, .5],
    [.01, .5], [.99, .5]];
  window.met = [];
  document.addEventListener('keydown', () => {
    const el = document.activeElement;
    if (!el || el === document.body || el === main) return;
    const stop = el.dataset.stop ?? (el.type === 'radio'
      ? document.querySelector(`[type=radio][name="${el.name}"][data-stop]`)?.dataset.stop : undefined);
    if (stop === undefined && !main.contains(el)) return;
    const box = el.getBoundingClientRect();
    const seen = box.width <= 2 || points.some(([x, y]) => {
      const hit = document.elementFromPoint(box.x + box.width * x, box.y + box.height * y);
      return hit && (el.contains(hit) || hit.contains(el) && hit.closest('label')?.control === el);
    });
    const name = el.id || (el.getAttribute('aria-label') || el.textContent || el.name || '').trim().slice(0, 40);
    const drawn = outlined(el) || outlined(el.closest('.card'));
    window.met.push({ stop, drawn, seen, name: `${el.tagName.toLowerCase()} ${name}` });
  }, true);
  return { n, news };
}
