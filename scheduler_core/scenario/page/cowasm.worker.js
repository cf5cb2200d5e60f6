// The runtime bundled: CPython and NumPy of the npm packages python-wasm and @cowasm/py-numpy, in this worker alone.
const load = require('@cowasm/kernel/dist/wasm/worker/import').default;
const { createFileSystem } = require('wasi-js');
const unzip = require('wasi-js/dist/unzip').default;
const bindings = require('wasi-js/dist/bindings/browser').default;

const LIBRARY = '/usr/lib/python.wasm';

// The parts, each a zip of stored files, packed once more for the way; told as their bytes arrive.
async function fetched(part) {
  const response = await fetch(`${part}.bin`);
  if (!response.ok) throw new Error(`${part}.bin: the file server answers ${response.status}`);
  let got = 0;
  const counted = new TransformStream({
    transform(chunk, controller) {
      postMessage({ part, got: got += chunk.length });
      controller.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(counted).pipeThrough(new DecompressionStream('gzip'))).arrayBuffer();
}

async function start() {
  const parts = await Promise.all(['python', 'numpy', 'core'].map(fetched));
  postMessage({ state: 'All is here; the scheduler starts.' });
  // One file system, whose errors are not looked into: Python asks for many files that are not there.
  Error.stackTraceLimit = 0;
  const fs = createFileSystem([{ type: 'dev' }]);
  for (const data of parts) unzip({ data, fs, directory: '/usr/lib' });
  const compiled = {};
  for (const path of ['/usr/lib/kernel.wasm', LIBRARY]) compiled[path] = await WebAssembly.compile(fs.readFileSync(path));
  const made = (path, imports) => new WebAssembly.Instance(compiled[path] || new WebAssembly.Module(fs.readFileSync(path)), imports);
  const kernel = await load({
    source: '/usr/lib/kernel.wasm',
    bindings: { ...bindings, fs, posix: { getpid: () => 1, getppid: () => 1 } },
    options: {
      env: { PYTHONHOME: '/usr', PYTHONEXECUTABLE: LIBRARY, PYTHONTZPATH: '', PYTHONDONTWRITEBYTECODE: '1' },
      wasmEnv: { wasmGetSignalState: () => 0 },
      sendStdout: () => {},
      sendStderr: (data) => console.error(new TextDecoder().decode(data)),
      sleep: () => {},
      getStdin: () => new Uint8Array(0),
    },
    importWebAssembly: async (path, imports) => made(path, imports),
    importWebAssemblySync: made,
    readFileSync: fs.readFileSync,
    maxMemoryMB: 1000,
  });
  const call = (name, text) => kernel.callWithString({ name, dll: LIBRARY }, text);
  call('cowasm_python_init', '');
  const run = (code) => {
    if (call('cowasm_python_exec', code)) throw new Error('Python does not run');
  };
  run(`
import importlib, json, sys, traceback
sys.path[:] = ['/usr/lib/python3.11', '/usr/lib/python3.11/lib-dynload', '/usr/lib/core']
def ask(module, name):
    try:
        answer = getattr(importlib.import_module(module), name)(open('/usr/lib/given', encoding='utf-8').read())
    except Exception as error:
        traceback.print_exc()
        answer = json.dumps({'problems': [{'line': None, 'words': f'the engine failed: {type(error).__name__}: {error}'}]})
    with open('/usr/lib/answer', 'w', encoding='utf-8') as file:
        file.write(answer)
import scheduler_core.scenario.page
`);
  return ({ module, name, given }) => {
    fs.writeFileSync('/usr/lib/given', given);
    run(`ask('${module}', '${name}')`);
    return new TextDecoder().decode(fs.readFileSync('/usr/lib/answer'));
  };
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
