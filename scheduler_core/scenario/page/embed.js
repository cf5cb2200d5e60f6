// For a documentation page: <script src="https://HOST/page/embed.js" defer></script> puts a link under each YAML block.
(() => {
  const page = new URL('./', document.currentScript.src).href;
  async function packed(text) {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('deflate'));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join('')).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  }
  addEventListener('DOMContentLoaded', () => document.querySelectorAll('pre > code').forEach(async (code) => {
    const text = code.textContent;
    if (!/^(nodes|pods|objects|items|apiVersion|kind):/m.test(text)) return;
    const link = document.createElement('a');
    link.href = `${page}#text=${await packed(text)}`;
    link.textContent = 'Open in the scheduling playground';
    code.parentElement.after(link);
  }));
})();
