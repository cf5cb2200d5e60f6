// What axe says of a page, and which colors of text it found readable: that, and whether a link differs from the words
// around it, is asked of what has looks not seen before.
async ([options, seen]) => {
  const once = f => { const known = new Map();
    return e => { if (!known.has(e)) known.set(e, f(e)); return known.get(e); }; };
  const style = once(e => getComputedStyle(e));
  const isPlain = own => own.position === 'static' && own.backgroundImage === 'none' && own.opacity === '1'
    && own.filter === 'none' && own.backgroundColor === 'rgba(0, 0, 0, 0)';
  const ground = once(e => { if (!e) return '';
    const own = style(e), around = ground(e.parentElement);
    if (isPlain(own)) return around;
    const place = own.position === 'static' ? '' : `${own.position} ${[...e.classList].join('.')}`;
    return [own.backgroundColor, own.backgroundImage, own.opacity, own.filter, place, around].join('|'); });
  const isText = e => e.matches('input, select, textarea')
    || [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && /\S/.test(n.data));
  const known = new Set(seen), news = new Map();
  for (const e of document.body.querySelectorAll('*')) {
    if (!isText(e) || !e.getClientRects().length) continue;
    const own = style(e), off = e.matches(':disabled, [aria-disabled=true], [aria-disabled=true] *');
    const parts = [own.color, own.fontSize, own.fontWeight, own.textShadow, off, ground(e)];
    if (e.matches('a[href]')) {
      const around = e.parentElement, words = isText(around) && around.localName;
      parts.push(own.textDecorationLine, own.borderBottomStyle, words, words && style(around).color);
    }
    const looks = parts.join('|');
    if (!news.has(looks) && !known.has(looks)) news.set(looks, e);
  }
  const asked = { resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block'],
    preload: false };
  const pale = news.size ? (await axe.run({ include: [...news.values()] }, asked)).violations : [];
  const others = options ? (await axe.run(document, options)).violations : [];
  return { found: [...pale, ...others], readable: pale.length ? [] : [...news.keys()] };
}
