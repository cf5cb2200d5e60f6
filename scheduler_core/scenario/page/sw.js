// Keeps what was fetched for this page, so that the next visit needs no network. Another build of the page is another store.
const STORE = 'playground-{{BUILD}}';
const FIRST = ['./', 'page.css', 'page.js'];

addEventListener('install', (event) => {
  skipWaiting();
  event.waitUntil(caches.open(STORE).then((store) => store.addAll(FIRST)));
});
addEventListener('activate', (event) => event.waitUntil((async () => {
  const old = (await caches.keys()).filter((name) => name.startsWith('playground-') && name !== STORE);
  await Promise.all(old.map((name) => caches.delete(name)));
  await clients.claim();
})()));
addEventListener('fetch', (event) => {
  if (event.request.method !== 'GET') return;
  event.respondWith((async () => {
    const store = await caches.open(STORE);
    const kept = await store.match(event.request, { ignoreSearch: true, ignoreVary: true });
    if (kept) return kept;
    const fresh = await fetch(event.request);
    if (fresh.ok) event.waitUntil(store.put(event.request, fresh.clone()).catch(() => {}));
    return fresh;
  })());
});
