// Python in this worker: Pyodide from its address, NumPy and PyYAML as Pyodide has them, the core from beside the page.
const ADDRESS = '{{ADDRESS}}';

async function start() {
  importScripts(`${ADDRESS}pyodide.js`);
  const python = await loadPyodide({ indexURL: ADDRESS });
  postMessage({ state: 'Python is here; NumPy is loading.' });
  await python.loadPackage('numpy');
  const core = await (await fetch('core.zip')).arrayBuffer();
  postMessage({ part: 'core', got: core.byteLength });
  python.unpackArchive(core, 'zip', { extractDir: '/core' });
  python.runPython("import importlib, sys; sys.path.insert(0, '/core'); import scheduler_core.scenario.page");
  const importModule = python.globals.get('importlib').import_module;
  return ({ module, name, given }) => importModule(module)[name](given);
}

const started = start();
started.then(() => postMessage({ ready: true }), (error) => postMessage({ failed: String(error.message || error) }));
onmessage = async ({ data }) => {
  try {
    postMessage({ answer: (await started)(data) });
  } catch (error) {
    postMessage({ failed: String(error.message || error) });
  }
};
