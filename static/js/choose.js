// Lists from which many are chosen: all at once, and how many they are.
(() => {
  const boxes = form => [...form.querySelectorAll('input[data-choice]')];
  const count = form => {
    const n = boxes(form).filter(box => box.checked).length;
    form.querySelectorAll('[data-chosen]').forEach(place => { place.textContent = n; });
    const all = form.querySelector('[data-choose-all]');
    if (all) {
      all.checked = n > 0 && n === boxes(form).length;
      all.indeterminate = n > 0 && !all.checked;
    }
  };
  document.addEventListener('change', e => {
    const form = e.target.form;
    if (!form?.matches('[data-choosing]')) return;
    if ('chooseAll' in e.target.dataset) boxes(form).forEach(box => { box.checked = e.target.checked; });
    count(form);
  });
  // Enter where a value is asked for is its button. In a box it is none: a browser would press the form's first.
  document.addEventListener('keydown', e => {
    if (e.key !== 'Enter' || !e.target.matches?.('[data-choosing] input')) return;
    e.preventDefault();
    e.target.closest('.sure')?.querySelector('[type=submit]').click();
  });
  const countAll = () => document.querySelectorAll('form[data-choosing]').forEach(count);
  addEventListener('pageshow', countAll);  // a page that is gone back to keeps its choice
  document.addEventListener('htmx:afterSwap', countAll);
})();
