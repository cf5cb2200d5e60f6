// The runtime bundled: CPython and NumPy of the npm packages python-wasm and @cowasm/py-numpy, in a worker of their own.
const asyncPython = require('python-wasm').default;

const FOLDER = '/usr/lib/python3.11';
globalThis.startEngine = async (tell) => {
  // Python shares memory with this page, which browsers allow where these two headers say so.
  if (!crossOriginIsolated) {
    throw new Error('its file server must send Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp');
  }
  const python = await asyncPython();
  tell('Python is here; NumPy and the scheduler are loading.');
  await python.kernel.fetch(new URL('core.zip', location.href).href, `${FOLDER}/core.zip`);
  await python.exec(`
import base64, os, sys, zipfile
os.environ['PYTHONTZPATH'] = ''
zipfile.ZipFile('${FOLDER}/core.zip').extractall('${FOLDER}/core')
sys.path[:0] = ['${FOLDER}/numpy.tar.xz', '${FOLDER}/core']
from scheduler_core.scenario import page as engine
def asked(name, given):
    return base64.b64encode(getattr(engine, name)(base64.b64decode(given).decode()).encode()).decode()
`);
  const packed = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
  const unpacked = (text) => new TextDecoder().decode(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)));
  return { ask: async (name, given) => unpacked((await python.repr(`asked('${name}', '${packed(given)}')`)).slice(1, -1)) };
};
