// The timeline: lanes follow the handles and a drag over the overview at once; what belongs together lights up.
(() => {
  const $ = id => document.getElementById(id);
  const show = () => {
    const from = $('tl-from'), to = $('tl-to'), most = Number(to.max);
    let a = Number(from.value), b = Number(to.value);
    if (a > b) [a, b] = [b, a];
    const width = Math.max(b - a, most / 1e4);
    $('tl').classList.add('moving');
    for (const lane of document.querySelectorAll('.tl-x')) lane.setAttribute('viewBox', `${a} 0 ${width} ${lane.viewBox.baseVal.height}`);
    const brush = document.querySelector('#tl .brush');
    brush.setAttribute('x', `${100 * a / most}%`);
    brush.setAttribute('width', `${100 * width / most}%`);
  };
  const isHandle = e => e.target.id === 'tl-from' || e.target.id === 'tl-to';
  document.addEventListener('input', e => { if (isHandle(e)) show(); });
  document.addEventListener('keydown', e => {
    if (!isHandle(e) || !e.shiftKey || !['ArrowLeft', 'ArrowRight'].includes(e.key)) return;
    e.preventDefault();
    e.target[e.key === 'ArrowLeft' ? 'stepDown' : 'stepUp'](10);
    show();
    e.target.dispatchEvent(new Event('change', { bubbles: true }));
  });
  // A drag over the overview chooses a range; a double click shows the whole run.
  let drag = null;
  const place = e => { const box = drag.getBoundingClientRect(); return Math.round(Number($('tl-to').max) * Math.min(1, Math.max(0, (e.clientX - box.left) / box.width))); };
  document.addEventListener('pointerdown', e => {
    drag = e.target.closest('.tl-hist');
    if (drag) { drag.dataset.at = place(e); drag.setPointerCapture(e.pointerId); }
  });
  document.addEventListener('pointermove', e => {
    if (!drag) return;
    const at = Number(drag.dataset.at), now = place(e);
    if (Math.abs(now - at) < Number($('tl-to').max) / 200) return;
    drag.dataset.moved = 'true';
    $('tl-from').value = Math.min(at, now);
    $('tl-to').value = Math.max(at, now);
    show();
  });
  document.addEventListener('pointerup', () => {
    if (drag?.dataset.moved) $('tl-to').dispatchEvent(new Event('change', { bubbles: true }));
    drag = null;
  });
  document.addEventListener('dblclick', e => { if (e.target.closest('.tl-hist')) $('tl-whole').click(); });
  const light = (id, on) => {
    for (const part of document.querySelectorAll('#tl [data-id]')) part.classList.toggle('lit', on && (part.dataset.id === id || part.dataset.for === id));
  };
  for (const [event, on] of [['pointerover', true], ['focusin', true], ['pointerout', false], ['focusout', false]])
    document.addEventListener(event, e => { const part = e.target.closest?.('#tl [data-id]'); if (part) light(part.dataset.id, on); });
})();
