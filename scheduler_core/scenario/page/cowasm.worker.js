// The runtime bundled: CPython and NumPy of the npm packages python-wasm and @cowasm/py-numpy, in this worker alone.
const load = require('@cowasm/kernel/dist/wasm/worker/import').default;
const { createFileSystem } = require('wasi-js');
const unzip = require('wasi-js/dist/unzip').default;
const bindings = require('wasi-js/dist/bindings/browser').default;

const LIBRARY = '/usr/lib/python.wasm';
const KERNEL = '/usr/lib/kernel.wasm';
const STORE = 'playground-{{BUILD}}';

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

// The memory of a Python that has the scheduler in it, as an earlier visit with the same files left it, and its libraries.
async function left() {
  try {
    const found = await (await caches.open(STORE)).match('memory');
    return found && { libraries: JSON.parse(found.headers.get('libraries')), bytes: new Uint8Array(await found.arrayBuffer()) };
  } catch {
    return undefined;
  }
}

async function start() {
  const [kept, ...parts] = await Promise.all([left(), ...['python', 'numpy', 'core'].map(fetched)]);
  postMessage({ state: 'All is here; the scheduler starts.' });
  // One file system, whose errors are not looked into: Python asks for many files that are not there.
  Error.stackTraceLimit = 0;
  const fs = createFileSystem([{ type: 'dev' }]);
  for (const data of parts) unzip({ data, fs, directory: '/usr/lib' });
  const compiled = {};
  for (const path of [KERNEL, LIBRARY]) compiled[path] = await WebAssembly.compile(fs.readFileSync(path));
  const libraries = { paths: [], places: [] }, again = kept ? [...kept.libraries.places] : [];
  let env;
  const made = (path, imports) => {
    const instance = new WebAssembly.Instance(compiled[path] || new WebAssembly.Module(fs.readFileSync(path)), imports);
    if (path === KERNEL) {
      env = imports.env;
      // The first that asks for this is the loader of libraries: where it puts one is noted, and is the same over a kept memory.
      Object.defineProperty(env, 'malloc', {
        configurable: true,
        get() {
          delete env.malloc;
          const malloc = env.__indirect_function_table.get(instance.exports.__WASM_EXPORT__malloc());
          return (bytes) => libraries.places[libraries.places.push(again.shift() ?? malloc(bytes)) - 1];
        },
      });
    } else libraries.paths.push(path);
    return instance;
  };
  const kernel = await load({
    source: KERNEL,
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
  const run = (code) => {
    if (call('cowasm_python_exec', code)) throw new Error('Python does not run');
  };
  if (kept) resume(kernel.memory, kept, env);
  else begin(call, run);
  const ask = ({ module, name, given }) => {
    fs.writeFileSync('/usr/lib/given', given);
    run(`ask('${module}', '${name}')`);
    return new TextDecoder().decode(fs.readFileSync('/usr/lib/answer'));
  };
  const keep = async () => {
    run("sys.modules['scheduler_core.scenario.page'].shown.cache_clear()");
    const headers = { libraries: JSON.stringify(libraries) };
    await (await caches.open(STORE)).put('memory', new Response(kernel.memory.buffer.slice(), { headers }));
    postMessage({ kept: true });
  };
  return { ask, keep: kept ? null : keep };
}

function begin(call, run) {
  call('cowasm_python_init', '');
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
}

// A memory is whole only beside its libraries: they are put where they were, over it, and then it is put over what they wrote.
function resume(memory, { libraries, bytes }, env) {
  memory.grow(bytes.length / 65536 - memory.buffer.byteLength / 65536);
  const whole = () => new Uint8Array(memory.buffer).set(bytes);
  whole();
  const name = memory.grow(1) * 65536;
  for (const path of libraries.paths) {
    new Uint8Array(memory.buffer).set(new TextEncoder().encode(`${path}\0`), name);
    env.dlopen(name, 0);
  }
  whole();
}

const started = start();
// What was kept may be what fails.
const failed = (error) => Promise.resolve(globalThis.caches?.open(STORE).then((store) => store.delete('memory')))
  .finally(() => postMessage({ failed: String(error.message || error) }));
started.then(({ keep }) => postMessage({ ready: true, resumed: !keep }), failed);
let asked = 0;
onmessage = async ({ data }) => {
  try {
    const { ask, keep } = await started;
    postMessage({ answer: ask(data) });
    // The first question is the page's own, and warms what every later one needs.
    if (!asked++) keep?.().catch(() => {});
  } catch (error) {
    failed(error);
  }
};
