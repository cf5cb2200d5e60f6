// Letters that are drawn on a page, by place: whether each says what it stands for.
() => {
  const found = {}, walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const says = (words, letter) => (words ?? '').replace(/\s+/g, ' ').trim().length > letter.length;
  while (walker.nextNode()) {
    const letter = walker.currentNode.data.trim(), e = walker.currentNode.parentElement;
    if (!/^[A-Z]$/.test(letter) || !e.getClientRects().length) continue;
    if (e.textContent.trim() !== letter || e.closest('code')) continue;  // a word of a sentence, or quoted
    const drawing = e.closest('svg'), around = e.parentElement;
    const explained =
      drawing ? says(e.closest('g')?.querySelector(':scope > title')?.textContent, letter)
      : e.matches('kbd') ? says(e.closest('button, a, dt')?.textContent, letter) || e.closest('dl.keys')
      : e.matches('[aria-hidden=true]') ? says(around.textContent, letter)
      : says(e.title, letter) || e.closest('legend');
    const where = `${letter} in ${e.tagName.toLowerCase()}.${[...e.classList].join('.')} of ${around.className}`;
    found[where] = Boolean(explained);
  }
  return found;
}
