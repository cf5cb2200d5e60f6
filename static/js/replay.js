// Replay: the slider asks for its cycle, Play goes on at the chosen speed, keys move one cycle.
(() => {
  let playing = false, timer = 0;
  const part = id => document.getElementById(id);
  const show = () => {
    const b = part('play');
    if (b) { b.setAttribute('aria-pressed', String(playing)); b.querySelector('span').textContent = playing ? 'Pause' : 'Play'; }
  };
  const stop = () => { clearTimeout(timer); playing = false; show(); };
  const next = () => {
    const link = part('cycle-next');
    if (!link || !link.href) { stop(); return; }
    link.click();
  };
  // The next one is due only after this one is there: a state that is still being decided makes the film wait.
  const arm = () => { clearTimeout(timer); timer = setTimeout(next, Number(part('speed')?.value || 1000)); };
  document.addEventListener('click', e => {
    if (!e.target.closest('#play')) return;
    if (playing) stop(); else { playing = true; show(); next(); }
  });
  document.addEventListener('input', e => {
    if (e.target.id !== 'cyc') return;
    stop();
    const t = part('cyc-shown');
    if (t) t.textContent = e.target.value;
  });
  // While something else is on its way the film waits for it.
  document.addEventListener('htmx:beforeRequest', () => clearTimeout(timer));
  document.addEventListener('htmx:afterSettle', () => {
    if (!playing) return;
    show();
    if (!part('deciding')) arm();
  });
})();
