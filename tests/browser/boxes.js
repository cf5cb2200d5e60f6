// What is wrong with the boxes of a page: at most eight sentences.
() => {
  const found = new Set(), root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.add(`the page is ${root.scrollWidth - root.clientWidth} px too wide`);
  // Each element is asked once, and what is so because of those around it is asked of the next one around: on a page of
  // many thousands, walking up from each took longer than all else.
  const once = f => { const known = new Map();
    return e => { if (!known.has(e)) known.set(e, f(e)); return known.get(e); }; };
  const said = e => e.textContent.trim().replace(/\s+/g, ' ').slice(0, 40);
  const say = e => `${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''}.${[...e.classList].join('.')} "${said(e)}"`;
  const text = once(e => [...e.childNodes].some(
    n => n.nodeType === Node.TEXT_NODE ? /\S/.test(n.data) : n.nodeType === Node.ELEMENT_NODE && text(n)));
  const style = once(e => getComputedStyle(e)), place = once(e => e.getBoundingClientRect());
  const drawing = once(e => e !== null && (e.tagName === 'svg' || drawing(e.parentElement)));
  // What is for screen readers alone is drawn in one pixel.
  const hidden = once(e => e !== null && (e.offsetWidth === 1 || hidden(e.parentElement)));
  const away = once(e => e !== null
    && (e.matches('.vh, [hidden], [popover], dialog:not([open])') || away(e.parentElement)));
  const drawn = once(e => e.getClientRects().length && !away(e) && style(e).visibility === 'visible' && !hidden(e));
  // A name or a sentence that is cut is whole in a title of it or around it.
  const told = e => e.closest('[title]') || e.querySelector(':scope > [title], :scope > * > [title]');
  const scrolls = own => ['auto', 'scroll'].includes(own.overflowX);
  const flows = once(e => !['absolute', 'fixed', 'sticky'].includes(style(e).position));
  for (const e of document.querySelectorAll('main *, header *, .runbar *')) {
    if (!drawn(e) || (drawing(e) && e.tagName !== 'svg')) continue;
    const box = place(e), around = place(e.parentElement);
    const of = style(e.parentElement), own = style(e);
    if (box.width <= 1 || of.display === 'contents') continue;
    const over = Math.max(box.right - around.right, around.left - box.left);
    if (over > 1.5 && flows(e) && of.display !== 'inline') {
      const by = `${Math.round(over)} px`;
      if (of.overflowX === 'visible') found.add(`${by} out of its box: ${say(e)} of ${say(e.parentElement)}`);
      else if (!scrolls(of) && !told(e)) found.add(`${by} cut: ${say(e)}`);
    }
    const cuts = own.overflowX !== 'visible' && !scrolls(own) && own.display !== 'inline';
    if (cuts && e.scrollWidth > e.clientWidth + 1 && text(e) && !told(e)) {
      found.add(`${e.scrollWidth - e.clientWidth} px of text cut: ${say(e)}`);
    }
  }
  for (const parent of document.querySelectorAll('main *, header *, .runbar')) {
    const children = [...parent.children].filter(e => drawn(e) && flows(e) && !drawing(e) && text(e));
    children.slice(1).forEach((e, i) => {
      const before = children[i];
      const inWords = [e, before].every(one => style(one).display.startsWith('inline'));
      if (!/flex|grid/.test(style(parent).display) && inWords) return;
      const a = place(before), b = place(e);
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 2) found.add(`${say(before)} lies under ${say(e)}`);
    });
  }
  const head = document.querySelector('header.app');
  for (const e of head ? head.querySelectorAll('*') : []) {
    const under = Math.round(place(e).bottom - place(head).bottom);
    if (drawn(e) && under > 1 && !drawing(e)) found.add(`${under} px below the header: ${say(e)}`);
  }
  return [...found].slice(0, 8);
}
