// A link that carries its scenario: what follows the # is read here, proved, and shown; only the button sends it.
(() => {
  const MOST = 32 * 2 ** 20, key = 'playground-carried';
  const part = id => document.getElementById(id);
  const line = (tag, words, css) => {
    const made = document.createElement(tag);
    made.textContent = words;
    if (css) made.className = css;
    return made;
  };
  // Who logs in first comes back without what followed the #.
  const kept = text => {
    try {
      if (text) sessionStorage.setItem(key, text);
      return text || sessionStorage.getItem(key) || '';
    } catch { return text; }
  };
  const show = (css, lead, words) => {
    const told = document.createElement('p');
    told.className = css;
    told.append(line('b', lead), ` ${words}`);
    part('carried-state').dataset.state = css || 'ok';
    part('carried-state').replaceChildren(told);
  };
  const facts = (opened) => {
    const count = kind => opened.scenario.objects?.filter(one => one.kind === kind).length ?? 0;
    const pairs = [
      ['Digest', `sha256:${opened.digest}`], ['Scheduler', `Kubernetes ${opened.scenario.emulates}`],
      ['Begins with', `${count('Node')} nodes, ${count('Pod')} pods, ${opened.scenario.objects?.length ?? 0} objects in all`],
      ['Steps', String(opened.scenario.steps?.length ?? 0)],
    ];
    if (opened.opensAt) pairs.push(['Opens at', `cycle ${opened.opensAt}`]);
    part('carried-facts').replaceChildren(...pairs.flatMap(([term, words]) => [line('dt', term), line('dd', words, term === 'Digest' ? 'digest' : '')]));
    part('carried-facts').hidden = false;
  };
  const read = async () => {
    const text = kept(location.hash.slice(1));
    part('bring').hidden = part('carried-facts').hidden = part('carried-note').hidden = true;
    part('carried-title').textContent = 'A scenario in a link';
    if (!text) { show('sub', 'Nothing follows the # of this address.', 'Open the whole link that was copied.'); return; }
    try {
      const opened = await carried.unfold(text, MOST);
      show('ok', 'Its digest is proved:', 'the scenario is the one that the link names. What it decides is found when it is run.');
      part('carried-title').textContent = opened.document.title || opened.document.name || 'A scenario in a link';
      facts(opened);
      part('carried-note').querySelector('blockquote').textContent = opened.note;
      part('carried-note').hidden = !opened.note;
      part('carried').value = text;
      if (part('in-page')) part('in-page').hash = text;
      part('bring').hidden = false;
    } catch (error) {
      try { sessionStorage.removeItem(key); } catch { /* private window */ }
      show('bad', 'This link cannot be opened:', `${error.message}. Ask for it again, whole; nothing was sent.`);
    }
  };
  addEventListener('hashchange', read);
  addEventListener('DOMContentLoaded', read);
})();
