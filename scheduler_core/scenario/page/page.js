// The page: what is typed goes to the engine (worker.js), and its answer is the standalone file.
(() => {
  const byId = (id) => document.getElementById(id);
  const [text, state, problems, frame, link, lesson, release, choices, fix] =
    ['text', 'state', 'problems', 'answer', 'link', 'lesson', 'release', 'choices', 'fix'].map(byId);
  const LESSONS = {{LESSONS}};
  const el = (tag, words, ...children) => {
    const made = document.createElement(tag);
    made.append(...(words ? [words] : []), ...children);
    return made;
  };
  const said = document.body.dataset;
  const first = { text: text.value, decisions: said.first };
  const WORDS = { python: 'Python', numpy: 'NumPy', core: 'The scheduler' };
  const parts = said.parts.split(' ').map((part) => part.split(':')).map(([name, bytes]) => ({ name, words: WORDS[name], bytes: Number(bytes) }));
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  let engine = null, asked = 0;

  // ---- the engine: it loads when first asked for, and tells the bytes as they come

  function row(part) {
    const got = el('span', `0 of ${megabytes(part.bytes)}`), bar = el('progress');
    Object.assign(bar, { max: part.bytes, value: 0 });
    bar.setAttribute('aria-label', part.words);
    byId('loads').append(el('li', '', el('span', part.words), got, bar));
    return (bytes) => {
      bar.value = bytes;
      got.textContent = bytes < part.bytes ? `${megabytes(bytes)} of ${megabytes(part.bytes)}` : megabytes(part.bytes);
    };
  }

  // What is fetched before this page's service worker has it would not be there without a network.
  const kept = () => new Promise((resolve) => {
    const store = navigator.serviceWorker;
    if (!store || store.controller) return resolve();
    store.addEventListener('controllerchange', resolve, { once: true });
    setTimeout(resolve, 1500);
  });

  async function start() {
    if (typeof WebAssembly !== 'object') throw new Error('this browser has no WebAssembly');
    const begun = performance.now();
    state.textContent = 'The scheduler is loading; you can read and write, and the answer follows.';
    byId('loads').replaceChildren();
    const rows = Object.fromEntries(parts.map((part) => [part.name, row(part)]));
    await kept();
    const worker = new Worker('worker.js'), open = [];
    const resumed = await new Promise((resolve, reject) => {
      worker.onerror = (event) => reject(new Error(event.message || 'worker.js did not start'));
      worker.onmessage = ({ data }) => {
        if (data.part) rows[data.part]?.(data.got);
        else if (data.state) state.textContent = data.state;
        else if (data.ready) resolve(data.resumed);
        else if (data.kept) byId('kept').textContent = 'Kept in this browser as it runs: the next visit needs neither a network nor this wait.';
        else if ('answer' in data) open.shift().resolve(JSON.parse(data.answer));
        else {
          const error = new Error(data.failed);
          worker.terminate();
          reject(error);
          for (const one of open.splice(0)) one.reject(lost(error));
        }
      };
    });
    const ask = (name, given, module = 'scheduler_core.scenario.page') => new Promise((resolve, reject) => {
      open.push({ resolve, reject });
      worker.postMessage({ module, name, given });
    });
    const known = await ask('answer', first.text);
    if (known.decisions !== first.decisions) throw new Error('it decides the first example otherwise than it was recorded');
    state.textContent = `The scheduler is here (${((performance.now() - begun) / 1000).toFixed(1)} s${resumed ? ', kept in this browser' : ''}) and decides the first example as recorded.`;
    byId('kept').textContent = navigator.serviceWorker?.controller
      ? 'Kept in this browser: the next visit works without a network, too.' : 'Not kept: this browser stores nothing for this address.';
    return ask;
  }

  function lost(error) {
    engine = null;
    state.textContent = `The scheduler could not be loaded: ${error.message || error}. The answer beside stays. Edit again to try once more, `
      + `reload the page, or open another browser${said.site ? '; "Open on a server" sends the scenario there' : ''}.`;
    return error;
  }

  globalThis.load = () => {
    engine ??= start().catch((error) => { throw lost(error); });
    return engine;
  };

  // ---- the editor: numbers, marks at wrong lines, what may be written

  function number(wrong = new Map()) {
    byId('lines').replaceChildren(...text.value.split('\n').map((_, at) => {
      const line = el(wrong.has(at + 1) ? 'b' : 'i', String(at + 1));
      line.title = wrong.get(at + 1) || '';
      return line;
    }));
    byId('lines').scrollTop = text.scrollTop;
  }

  function tellProblems(found) {
    number(new Map(found.map((one) => [one.line, one.words])));
    problems.replaceChildren(...found.map((one) => {
      if (!one.line) return el('li', one.words);
      const go = el('button', `Line ${one.line}`);
      go.type = 'button';
      go.addEventListener('click', () => select(one.line));
      return el('li', '', go, `: ${one.words.replace(/^line \d+: /, '')}`);
    }), ...(found.length ? [el('li', 'The answer is of the last correct text.')] : []));
    text.setAttribute('aria-invalid', String(found.length > 0));
    frame.classList.toggle('old', found.length > 0);
  }

  function select(line) {
    const lines = text.value.split('\n'), from = lines.slice(0, line - 1).join('\n').length + (line > 1);
    text.focus();
    text.setSelectionRange(from, from + lines[line - 1].length);
  }

  let offered = null;
  const close = () => {
    choices.hidden = true;
    text.removeAttribute('aria-activedescendant');
  };
  function choose(at) {
    [...choices.children].forEach((one, n) => one.setAttribute('aria-selected', String(n === at)));
    choices.scrollTop = choices.children[at].offsetTop - 80;
    text.setAttribute('aria-activedescendant', `choice-${at}`);
    offered.at = at;
  }
  function take(at) {
    text.setRangeText(offered.choices[at].insert, offered.from, text.selectionStart, 'end');
    close();
    text.dispatchEvent(new Event('input'));
    text.focus();
  }
  async function offer() {
    const at = text.selectionStart, ask = await globalThis.load();
    const found = await ask('complete', JSON.stringify({ text: text.value, at }));
    if (text.selectionStart !== at || !found.choices.length) return close();
    offered = found;
    choices.replaceChildren(...found.choices.map((one, n) => {
      const item = el('li', '', el('b', one.name), one.words ? ` ${one.words}` : '');
      Object.assign(item, { id: `choice-${n}`, role: 'option', title: one.words });
      item.addEventListener('pointerdown', (event) => { event.preventDefault(); take(n); });
      return item;
    }));
    const before = text.value.slice(0, at).split('\n');
    choices.style.top = `${Math.min(before.length * 20 + 8 - text.scrollTop, text.clientHeight - 60)}px`;
    choices.style.left = `${Math.min(50 + before.at(-1).length * 7.5 - text.scrollLeft, text.clientWidth / 2)}px`;
    choices.hidden = false;
    choose(0);
  }
  text.addEventListener('keydown', (event) => {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      offer().catch(() => {});
    } else if (!choices.hidden) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], count = offered.choices.length;
      if (step) choose((offered.at + step + count) % count);
      else if (event.key === 'Enter' || event.key === 'Tab') take(offered.at);
      else return event.key === 'Escape' && close();
      event.preventDefault();
    }
  });
  text.addEventListener('scroll', () => { byId('lines').scrollTop = text.scrollTop; close(); });
  text.addEventListener('blur', close);

  // ---- the answer, its link, and what would place the pods that wait

  function show(line, digest, decisions, words) {
    const address = `${location.href.split(/[?#]/)[0]}`;
    link.value = `${address}#${line}`;
    // A frame's name is what its document knows of the article around it: what is read before the scheduler is there.
    const there = { src: `${address}?embed#${line}`, name: words, title: 'Scheduling Playground', width: '100%', height: 480, loading: 'lazy' };
    byId('embed').value = Object.assign(el('iframe'), there).outerHTML;
    byId('length').textContent = link.value.length.toLocaleString('en');
    byId('digest').textContent = digest.slice(0, 12);
    byId('site').hidden = !said.site;
    byId('site').href = `${said.site}open/#${line}`;
    URL.revokeObjectURL(byId('save').href);
    byId('save').href = URL.createObjectURL(new Blob([frame.srcdoc], { type: 'text/html' }));
    byId('save').hidden = false;
    Object.assign(said, { digest, decisions });
  }

  function advise({ why, fix, change }) {
    const [apply, words] = [el('button', 'Apply'), el('p', '', el('span', fix))];
    Object.assign(apply, { type: 'button', className: 'btn' });
    apply.addEventListener('click', () => open('applied', JSON.stringify({ text: text.value, change })).catch(() => {}));
    if (change) words.append(' ', apply);
    return [el('p', '', el('b', why)), words];
  }

  async function answer() {
    const turn = ++asked, ask = await globalThis.load();
    if (turn !== asked) return;
    const found = await ask('answer', text.value);
    if (turn !== asked) return;
    tellProblems(found.problems || []);
    if (found.problems) return;
    frame.srcdoc = found.html;
    release.value = found.release;
    show(found.line, found.digest, found.decisions, found.words);
    history.replaceState(null, '', `#${found.line}`);
    fix.hidden = !found.waiting;
    if (!found.waiting) return;
    fix.textContent = 'Looking for what would place the pods that wait.';
    const counsel = await ask('counsel', text.value);
    if (turn !== asked) return;
    fix.replaceChildren(...(counsel.problems ? counsel.problems.map((one) => one.words) : counsel.found.flatMap(advise)));
  }

  async function open(name, given) {
    const ask = await globalThis.load();
    const found = await ask(name, given);
    if (found.problems) return tellProblems(found.problems);
    text.value = found.text;
    await answer();
  }

  lesson.append(...LESSONS.map(([name, title]) => Object.assign(el('option', title), { value: name })));
  let waiting = 0;
  text.addEventListener('input', () => {
    number();
    clearTimeout(waiting);
    waiting = setTimeout(() => answer().catch(() => {}), 250);
    const before = text.value.slice(0, text.selectionStart);
    if (engine && /(^|[\s{,-])[a-zA-Z]{2,}$/.test(before)) offer().catch(() => {});
    else close();
    globalThis.load().catch(() => {});
  });
  lesson.addEventListener('change', () => lesson.value && open('lesson', lesson.value).catch(() => {}));
  release.addEventListener('change', () => open('released', JSON.stringify({ text: text.value, release: release.value })).catch(() => {}));
  byId('shorter').addEventListener('click', () => open('shorter', text.value).catch(() => {}));
  const read = async (file) => file && open('opened', await file.text()).catch(() => {});
  byId('file').addEventListener('change', (event) => read(event.target.files[0]));
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => { event.preventDefault(); read(event.dataTransfer.files[0]); });
  document.querySelectorAll('[data-copy]').forEach((button) => button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(byId(button.dataset.copy).value);
    button.textContent = 'Copied';
  }));

  // What follows the #: a carried scenario, `lesson=NAME`, or `text=` and text packed by embed.js.
  async function opened() {
    const [, key, value] = /^#(?:(lesson|text)=)?(.+)$/.exec(location.hash) || [];
    if (!value || value === link.value.split('#')[1]) return;
    if (key !== 'text') return open(key || 'carried', value);
    const bytes = Uint8Array.from(atob(value.replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0));
    text.value = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))).text();
    await answer();
  }
  number();
  // The first answer carries its scenario, as every standalone file does.
  const line = /id="scenario">([^<]*)</.exec(frame.srcdoc)[1];
  show(line, line.split('.')[1], first.decisions, said.words);
  const embedded = new URLSearchParams(location.search).has('embed');
  document.body.classList.toggle('embedded', embedded);
  const begin = () => opened().catch((error) => { state.textContent = `What follows the # cannot be opened: ${error.message}`; });
  if (embedded && location.hash) {
    const [, title, words] = LESSONS.find(([name]) => location.hash === `#lesson=${name}`) || ['', 'Scheduling Playground', self.name];
    byId('cover').hidden = false;
    byId('cover').firstChild.textContent = title;
    byId('covered').textContent = words;
    byId('try').addEventListener('click', () => { byId('cover').hidden = true; begin(); });
  } else begin();
  addEventListener('hashchange', begin);
  navigator.serviceWorker?.register('sw.js').catch(() => {});
  // What this browser has already is made ready while its reader reads.
  if (!embedded) globalThis.caches?.match('worker.js').then((there) => there && globalThis.load()).catch(() => {});
})();
