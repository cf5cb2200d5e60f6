// Runs `witness.answer(job)` in CPython compiled to WebAssembly: node run.js PATHS JOB, both in JSON; writes job.out.
const { syncPython } = require('python-wasm');

(async () => {
  const python = await syncPython({ fs: 'everything' });
  python.exec(`
import json, os, sys, traceback
# This Python was built without the module that says where time zones are.
os.environ['PYTHONTZPATH'] = '/usr/share/zoneinfo'
sys.path[:0] = json.loads(${JSON.stringify(process.argv[2])})
try:
    import witness
    witness.answer(json.loads(${JSON.stringify(process.argv[3])}))
    failed = ''
except BaseException:
    failed = traceback.format_exc()
`);
  const failed = python.repr('failed');
  if (failed !== "''") console.error(failed.replace(/\\n/g, '\n'));
  process.exit(failed === "''" ? 0 : 1);
})();
