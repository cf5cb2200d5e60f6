// Runs `witness.answer` in CPython compiled to WebAssembly: node run.js PATHS JOB OUT, paths as JSON; a job is read from
// the file JOB, what comes of it is written to the file OUT.
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
    with open(${JSON.stringify(process.argv[3])}) as job:
        found = witness.answer(job.read())
    with open(${JSON.stringify(process.argv[4])}, 'w') as out:
        out.write(found)
    failed = ''
except BaseException:
    failed = traceback.format_exc()
`);
  const failed = python.repr('failed');
  if (failed !== "''") console.error(failed.replace(/\\n/g, '\n'));
  process.exit(failed === "''" ? 0 : 1);
})();
