// Python in this worker: Pyodide from its address, NumPy and PyYAML as Pyodide has them, the core from beside the page.
const ADDRESS = '{{ADDRESS}}';
importScripts(`${ADDRESS}pyodide.js`);

const started = (async () => {
  const python = await loadPyodide({ indexURL: ADDRESS });
  postMessage({ state: 'Python is here; NumPy is loading.' });
  await python.loadPackage('numpy');
  const core = await fetch('core.zip');
  python.unpackArchive(await core.arrayBuffer(), 'zip', { extractDir: '/core' });
  python.runPython("import sys; sys.path.insert(0, '/core'); from scheduler_core.scenario import page as engine");
  postMessage({ ready: true });
  return python.globals.get('engine');
})();
started.catch((error) => postMessage({ failed: String(error.message || error) }));
onmessage = async ({ data }) => postMessage({ answer: (await started)[data.name](data.given) });
