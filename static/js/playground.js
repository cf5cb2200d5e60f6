// Theme toggle, view toggle, message parts, keyboard shortcuts, status words. Everything else is htmx.
(() => {
  const root = document.documentElement, key = 'playground-theme', off = 'playground-keys-off';
  const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* private window */ } };
  const kept = name => { try { return localStorage.getItem(name); } catch { return null; } };
  const set = t => { t ? root.dataset.theme = t : delete root.dataset.theme; };
  set(new URLSearchParams(location.search).get('theme') || kept(key));
  const say = words => { const s = document.getElementById('status'); if (s && words) s.textContent = words; };

  document.addEventListener('click', e => {
    const t = e.target.closest('[data-theme-toggle],[data-part],[data-copy]');
    if (!t) return;
    if ('themeToggle' in t.dataset) {
      const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
      set(dark ? 'light' : 'dark'); keep(key, root.dataset.theme);
    } else if ('copy' in t.dataset) {
      const from = document.getElementById(t.dataset.copyFrom);
      navigator.clipboard?.writeText(t.dataset.copy || from?.value || from?.textContent || location.href)
        .then(() => say('Copied'));
    } else if (!t.closest('[data-parts="server"]')) {
      e.preventDefault();  // a small matrix is here already: show and hide rows instead of asking again
      const on = t.getAttribute('aria-pressed') !== 'true';
      document.querySelectorAll('[data-part]').forEach(b => b.setAttribute('aria-pressed', on && b === t));
      let shown = 0;
      document.querySelectorAll('[data-why]').forEach(r => {
        r.hidden = on && !r.dataset.why.split(' ').includes(t.dataset.part);
        if (!r.hidden) shown += 1;
      });
      say(`${shown} nodes shown`);
    }
  });

  document.addEventListener('keydown', e => {
    if (kept(off) === '1' && e.key !== '?') return;
    if (e.target.closest('input,select,textarea,[contenteditable]') || e.metaKey || e.ctrlKey || e.altKey) return;
    const target = [...document.querySelectorAll(`[data-key="${CSS.escape(e.key)}"]`)]
      .find(b => !b.disabled && b.getClientRects().length);
    if (target) { e.preventDefault(); target.click(); }
  });

  document.addEventListener('change', e => {
    if ('keysOff' in e.target.dataset) keep(off, e.target.checked ? '1' : '0');
    if ('autosubmit' in e.target.dataset) e.target.form?.requestSubmit();
    // A chosen file is shown where it would have been pasted, so that the preview sees it too.
    if (e.target.dataset.fills && e.target.files?.[0]) {
      const area = document.getElementById(e.target.dataset.fills);
      e.target.files[0].text().then(text => { area.value = text; area.dispatchEvent(new Event('input', { bubbles: true })); });
    }
  });

  document.addEventListener('DOMContentLoaded', () => {
    const box = document.querySelector('[data-keys-off]');
    if (box) box.checked = kept(off) === '1';
    // The event names the element that was swapped out; what is new has its id.
    const newsOf = e => (document.getElementById(e.detail.target?.id) ?? e.detail.target)?.dataset?.say;
    document.body.addEventListener('htmx:afterSwap', e => say(newsOf(e)));
    // What a tick brings is read out together, at most once a second.
    let news = [], timer = 0;
    document.body.addEventListener('htmx:oobAfterSwap', e => {
      const words = newsOf(e);
      if (!words) return;
      news.push(words);
      timer ||= setTimeout(() => { say([...new Set(news)].slice(-2).join('. ')); news = []; timer = 0; }, 1000);
    });
    const lost = show => { const b = document.getElementById('lost'); if (b) b.hidden = !show; };
    // Without its event stream (a proxy may hold it back) a page asks by itself; lost is who gets no answer either.
    let polling = 0;
    const ask = () => document.body.dispatchEvent(new Event('pulse'));
    document.body.addEventListener('htmx:sseError', () => { if (!polling) { polling = setInterval(ask, 3000); ask(); } });
    document.body.addEventListener('htmx:sseOpen', () => { clearInterval(polling); polling = 0; lost(false); });
    document.body.addEventListener('htmx:sendError', () => lost(true));
    document.body.addEventListener('htmx:afterRequest', e => {
      if (e.detail.successful) lost(false); else if (e.detail.xhr?.status >= 502) lost(true);
    });
    // What was unfolded stays so when its page part is swapped.
    let unfolded = [];
    document.body.addEventListener('htmx:beforeSwap', e => {
      unfolded = [...(e.detail.target?.querySelectorAll?.('details[open][id]') ?? [])].map(d => d.id);
    });
    document.body.addEventListener('htmx:afterSwap', () => unfolded.forEach(id => document.getElementById(id)?.setAttribute('open', '')));
    // What a tick replaced while an answer for it was on its way is found again by its id.
    document.body.addEventListener('htmx:beforeRequest', e => {
      const asked = e.detail;
      asked.xhr.addEventListener('readystatechange', () => {
        if (!asked.target.isConnected) asked.target = document.getElementById(asked.target.id) ?? asked.target;
      });
    });
    // A refused form comes back with its errors in place: show it although the status is not 200.
    document.body.addEventListener('htmx:beforeSwap', e => {
      if ([400, 403, 404, 409, 413, 422].includes(e.detail.xhr.status) && e.detail.xhr.getResponseHeader('X-Swap')) {
        e.detail.shouldSwap = true; e.detail.isError = false;
      }
    });
  });
})();
