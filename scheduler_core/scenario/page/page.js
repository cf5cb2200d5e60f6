// The page: what is typed goes to the engine (`startEngine` of runtime.js), and its answer is the standalone file.
(() => {
  const [text, state, problems, frame, link, lesson] = ['text', 'state', 'problems', 'answer', 'link', 'lesson'].map((id) => document.getElementById(id));
  const first = { text: text.value, decisions: document.body.dataset.first };
  // The first answer carries its scenario, as every standalone file does.
  link.href = `#${/id="scenario">([^<]*)</.exec(frame.srcdoc)[1]}`;
  let engine = null;
  let asked = 0;

  function load() {
    if (!engine) {
      const begun = performance.now();
      const tell = (words) => { state.textContent = words; };
      tell('The scheduler is loading; the answer follows.');
      engine = startEngine(tell).then(async (started) => {
        const known = JSON.parse(await started.ask('answer', first.text));
        if (known.decisions !== first.decisions) throw new Error('it decides the first example otherwise than it was recorded');
        tell(`The scheduler is here (${((performance.now() - begun) / 1000).toFixed(1)} s) and decides the first example as recorded.`);
        return started;
      });
      engine.catch((error) => {
        engine = null;
        tell(`The scheduler could not be loaded: ${error.message || error}. The answer beside stays; edit again to try once more.`);
      });
    }
    return engine;
  }

  function tellProblems(found) {
    problems.replaceChildren(...found.map((one) => {
      const item = document.createElement('li');
      item.textContent = one.words;
      return item;
    }));
    text.setAttribute('aria-invalid', String(found.length > 0));
    frame.classList.toggle('old', found.length > 0);
  }

  async function answer() {
    const turn = ++asked;
    const started = await load();
    if (turn !== asked) return;
    const found = JSON.parse(await started.ask('answer', text.value));
    if (turn !== asked) return;
    tellProblems(found.problems || []);
    if (found.problems) return;
    frame.srcdoc = found.html;
    link.href = `#${found.line}`;
    history.replaceState(null, '', link.href);
    document.body.dataset.digest = found.digest;
    document.body.dataset.decisions = found.decisions;
  }

  async function open(name, given) {
    if (!given) return;
    const found = JSON.parse(await (await load()).ask(name, given));
    tellProblems(found.problems || []);
    if (found.problems) return;
    text.value = found.text;
    await answer();
  }

  let waiting = 0;
  text.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => answer().catch(() => {}), 250);
    load().catch(() => {});
  });
  const opened = () => open('carried', location.hash.slice(1)).catch(() => {});
  lesson.addEventListener('change', () => open('lesson', lesson.value).catch(() => {}));
  addEventListener('hashchange', opened);
  opened();
})();
